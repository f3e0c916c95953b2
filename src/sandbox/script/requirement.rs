//! One requirement: checked letter by letter, read as PEP 508, and written anew.

use super::quoted;
use crate::sandbox::Refused;
use pep508_rs::pep440_rs::VersionSpecifiers;
use pep508_rs::{MarkerWarningKind, Requirement as Pep508, VerbatimUrl};
use std::path::Path;
use std::str::FromStr;

/// A longer requirement is refused.
const MAX_BYTES: usize = 200;

/// What a refusal ends with where nothing better is known.
const HINT: &str = "write a name and versions, for example \"requests>=2\"";

/// What names, extras, versions and markers are made of. All else is only of use in places and options.
const PUNCTUATION: &str = " ._-[],<>=!~*+();'\"";

/// A package and the versions of it that will do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Requirement {
    pub(super) name: String,
    pub(super) text: String,
}

/// Reads the requirement at a place of the list.
pub(super) fn read(written: &str, place: usize) -> Result<Requirement, Refused> {
    let refuse = |what: &str, hint: &str| {
        let odd = odd_character(written).map(|odd| format!(" with {} in it", quoted(odd))).unwrap_or_default();
        let message = format!("expected {what} as dependencies[{place}]: got {}{odd}: {hint}", quoted(written));
        Err(Refused::dependency(message))
    };
    if written.len() > MAX_BYTES {
        return refuse(&format!("at most {MAX_BYTES} characters"), HINT);
    }
    if odd_character(written).is_some() || !written.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        return refuse("a package's name", hint_for(written));
    }
    if written.contains("===") {
        return refuse("a version that PEP 440 knows", "compare with == instead of ===");
    }
    if !well_named(written) {
        return refuse("a package's name", HINT);
    }
    let mut warning = None;
    let mut heed = |_: MarkerWarningKind, text: String| warning = Some(text);
    match Pep508::<VerbatimUrl>::parse_reporter(written, Path::new(""), &mut heed) {
        Ok(read) => match warning {
            Some(_) => refuse("a marker that PEP 508 knows", "leave out what stands after the semicolon"),
            None => Ok(Requirement { name: read.name.to_string(), text: read.to_string() }),
        },
        Err(_) if written.contains(';') => {
            refuse("a requirement that PEP 508 knows", "leave out what stands after the semicolon")
        }
        Err(_) => refuse("a requirement that PEP 508 knows", hint_for(written)),
    }
}

/// Reads `requires-python`.
pub(super) fn read_python(written: &str) -> Result<String, Refused> {
    let hint = "write for example \">=3.11\"";
    let refuse = |what: &str| {
        Err(Refused::dependency(format!("expected {what} as requires-python: got {}: {hint}", quoted(written))))
    };
    if written.len() > MAX_BYTES {
        return refuse(&format!("at most {MAX_BYTES} characters"));
    }
    match VersionSpecifiers::from_str(written) {
        Ok(versions) if !versions.is_empty() && odd_character(written).is_none() && !written.contains("===") => {
            Ok(versions.to_string())
        }
        _ => refuse("versions of Python"),
    }
}

fn odd_character(written: &str) -> Option<&str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || PUNCTUATION.contains(letter);
    let odd = written.trim_start_matches(is_plain);
    odd.split_inclusive(|_| true).next()
}

fn hint_for(written: &str) -> &'static str {
    if written.starts_with('-') || written.contains(" -") {
        "options of an installer can't be given, only names and versions"
    } else if written.contains(['@', ':', '/', '\\']) {
        "packages are taken from the index by their name, not from a place"
    } else {
        HINT
    }
}

/// Whether name and extras begin and end with a letter or digit; the parser takes that for granted.
fn well_named(written: &str) -> bool {
    let name = written.split(|letter: char| !is_of_name(letter)).next().unwrap_or_default();
    let after = written.strip_prefix(name).unwrap_or_default().trim_start_matches(' ');
    let Some(extras) = after.strip_prefix('[') else { return ends_well(name) };
    let Some((extras, _)) = extras.split_once(']') else { return false };
    ends_well(name) && (extras.trim().is_empty() || extras.split(',').all(|extra| ends_well(extra.trim_matches(' '))))
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_')
}

fn ends_well(name: &str) -> bool {
    name.chars().all(is_of_name)
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.ends_with(|last: char| last.is_ascii_alphanumeric())
}
