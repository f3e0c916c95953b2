//! What a script says of itself: the packages and the Python that it needs.
//!
//! A declaration is `# dependencies = ["requests"]` in the comments above the first line of code, or a block of
//! PEP 723. What it lists is passed on as it was understood, never as it was written.

mod declaration;
mod hint;
mod misplaced_declaration;
mod requirement;
mod stdlib;
mod unescape;

use super::Refused;
use pep508_rs::pep440_rs::{Version, VersionSpecifiers};
use serde::Serialize;
use std::collections::BTreeSet;
use std::str::FromStr;

pub use hint::hints;

/// A longer script is refused.
pub const MAX_BYTES: usize = 1 << 20;

/// A script as it is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Script {
    /// The code.
    pub code: String,
    /// The packages that it needs, as PEP 508 writes them: sorted, each once.
    pub dependencies: Vec<String>,
    /// The normalised name of each of them, in the same order.
    pub names: Vec<String>,
    /// The versions of Python that it runs on, as PEP 440 writes them.
    pub requires_python: Option<String>,
    /// What the model may want to know of its script.
    pub hints: Vec<String>,
}

impl Script {
    /// Reads what a model gave as code.
    ///
    /// # Errors
    /// `bad_code` and `dependency_rejected`.
    pub fn read(code: &str) -> Result<Self, Refused> {
        if code.len() > MAX_BYTES {
            let message =
                format!("expected at most {MAX_BYTES} bytes of code: got {}: keep data out of the code", code.len());
            return Err(Refused::code(message));
        }
        let code = code.strip_prefix('\u{feff}').unwrap_or(code);
        if code.trim().is_empty() {
            return Err(Refused::code("expected Python code: got nothing: put the whole script into code"));
        }
        let mut hints = Vec::new();
        let code = match unescape::unescape(code) {
            Some(unescaped) => {
                hints.push(unescape::NOTE.to_owned());
                unescaped
            }
            None => code.to_owned(),
        };
        let lines = lines(&code);
        let declared = declaration::read(&lines)?;
        let mut requirements = Vec::new();
        for (place, written) in declared.dependencies.iter().flatten().enumerate() {
            let requirement = requirement::read(written, place)?;
            if stdlib::holds(&requirement.name) {
                hints.push(format!("{} is part of Python and needs no declaration", requirement.name));
            } else {
                requirements.push(requirement);
            }
        }
        requirements.sort();
        requirements.dedup();
        let requires_python = declared.requires_python.as_deref().map(requirement::read_python).transpose()?;
        if let Some(line) = lines.iter().position(|line| line.contains('\0')) {
            let message = format!("expected text: got a NUL byte in line {}: write it as \\x00", line + 1);
            return Err(Refused::code(message));
        }
        if declared.dependencies.is_none() {
            hints.extend(misplaced_declaration::hint(&lines));
        }
        let (names, dependencies) = requirements.into_iter().map(|one| (one.name, one.text)).unzip();
        Ok(Self { code, dependencies, names, requires_python, hints })
    }

    /// Compares the Python that the script asks for with this version.
    ///
    /// # Errors
    /// `dependency_rejected` where it asks for another.
    pub fn check_python(&self, version: &str) -> Result<(), Refused> {
        let Some(wanted) = &self.requires_python else { return Ok(()) };
        let fits = match (VersionSpecifiers::from_str(wanted), Version::from_str(version)) {
            (Ok(wanted), Ok(version)) => wanted.contains(&version),
            _ => false,
        };
        if fits {
            return Ok(());
        }
        let message =
            format!("the script requires Python {wanted}, this one is {version}: write it for Python {version}");
        Err(Refused::dependency(message))
    }
}

/// These requirements as PEP 508 writes them: sorted, each once.
///
/// # Errors
/// `dependency_rejected` where one of them is no name with versions.
pub(crate) fn normalise(requirements: &[String]) -> Result<Vec<String>, Refused> {
    let read: Result<BTreeSet<_>, _> =
        requirements.iter().enumerate().map(|(place, written)| requirement::read(written, place)).collect();
    Ok(read?.into_iter().map(|requirement| requirement.text).collect())
}

/// The lines of a script, as Python's tokenizer splits them.
fn lines(code: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = Vec::new();
    for line in code.split('\n') {
        lines.extend(line.strip_suffix('\r').unwrap_or(line).split('\r'));
    }
    lines
}

/// What stands behind the first `#` of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    line.trim_start_matches([' ', '\t', '\u{c}']).strip_prefix('#')
}

/// Text of the model's, quoted on one line and cut; letters that only look like others are told by their numbers.
fn quoted(text: &str) -> String {
    const SHOWN: usize = 80;
    let mut shown = String::from("\"");
    for letter in text.chars().take(SHOWN) {
        match letter {
            ' '..='~' => shown.push(letter),
            _ => shown.extend(letter.escape_default()),
        }
    }
    shown.push_str(if text.chars().nth(SHOWN).is_some() { "…\"" } else { "\"" });
    shown
}

#[cfg(test)]
mod tests;
