//! Where a script declares what it needs: the comments above the first line of code, or a block of PEP 723.

use super::{comment, quoted};
use crate::sandbox::Refused;
use toml::{Table, Value};

/// A longer declaration is refused before it is read.
const MAX_BYTES: usize = 16 << 10;

/// More packages are refused.
const MAX_DEPENDENCIES: usize = 32;

/// More lines are not one declaration.
const MAX_LINES: usize = 256;

const DEPENDENCIES: &str = "dependencies";
const PYTHON: &str = "requires-python";

const EXAMPLE: &str = "write one line, for example # dependencies = [\"requests\"]";

/// The tables of an installer's settings, and the settings that need none.
const TABLES: [&str; 4] = ["tool", "index", "sources", "pip"];
const SETTINGS: [&str; 4] = ["index-url", "extra-index-url", "default-index", "find-links"];

/// What a script declares, as it was written.
#[derive(Debug, Default)]
pub(super) struct Declared {
    pub(super) dependencies: Option<Vec<String>>,
    pub(super) requires_python: Option<String>,
}

/// Reads the one declaration of a script.
pub(super) fn read(lines: &[&str]) -> Result<Declared, Refused> {
    let mut blocks = Block::all(lines)?.into_iter();
    let mut declared = Declared::default();
    let block = blocks.next();
    if let Some(block) = &block {
        declared.take(block.table()?, block.first)?;
        if let Some(second) = blocks.next() {
            return Err(twice("# /// script", second.first));
        }
    }
    let mut next = 0;
    while let Some(line) = lines.get(next) {
        if let Some(block) = block.as_ref().filter(|block| block.first == next) {
            next = block.last + 1;
            continue;
        }
        let text = match comment(line) {
            Some(text) => text.trim(),
            None if line.trim().is_empty() => "",
            None => break,
        };
        if [DEPENDENCIES, PYTHON].iter().any(|key| is_assigned(text, key)) {
            if block.is_some() {
                return Err(twice("a declaration", next));
            }
            let (table, used) = collect(lines, next)?;
            declared.take(table, next)?;
            next += used;
            continue;
        }
        if is_setting(text) {
            return Err(unknown(text, next));
        }
        next += 1;
    }
    Ok(declared)
}

impl Declared {
    fn take(&mut self, table: Table, line: usize) -> Result<(), Refused> {
        for (key, value) in table {
            match (key.as_str(), value) {
                (DEPENDENCIES, Value::Array(listed)) => {
                    if self.dependencies.replace(strings(listed)?).is_some() {
                        return Err(twice(DEPENDENCIES, line));
                    }
                }
                (DEPENDENCIES, other) => {
                    let got = other.type_str();
                    let message = format!("expected a list of strings as dependencies: got {got}: {EXAMPLE}");
                    return Err(Refused::dependency(message));
                }
                (PYTHON, Value::String(versions)) => {
                    if self.requires_python.replace(versions).is_some() {
                        return Err(twice(PYTHON, line));
                    }
                }
                (PYTHON, other) => {
                    let got = other.type_str();
                    let message =
                        format!("expected a string as requires-python: got {got}: write for example \">=3.11\"");
                    return Err(Refused::dependency(message));
                }
                _ => return Err(unknown(&key, line)),
            }
        }
        Ok(())
    }
}

fn strings(listed: Vec<Value>) -> Result<Vec<String>, Refused> {
    if listed.len() > MAX_DEPENDENCIES {
        let message = format!(
            "expected at most {MAX_DEPENDENCIES} dependencies: got {}: list only what the script imports",
            listed.len()
        );
        return Err(Refused::dependency(message));
    }
    let read = |(place, value): (usize, Value)| match value {
        Value::String(text) => Ok(text),
        other => {
            let got = other.type_str();
            let message = format!("expected a string as dependencies[{place}]: got {got}: {EXAMPLE}");
            Err(Refused::dependency(message))
        }
    };
    listed.into_iter().enumerate().map(read).collect()
}

/// The value that begins on this line, which may go on over further lines of comment, and how many lines it has.
fn collect(lines: &[&str], first: usize) -> Result<(Table, usize), Refused> {
    let mut text = String::new();
    let mut fault = None;
    let comments = lines.iter().skip(first).map_while(|line| comment(line));
    for (used, line) in comments.take(MAX_LINES).enumerate() {
        text.push_str(line.trim_start());
        text.push('\n');
        check_length(&text, first)?;
        match parse(&text) {
            Ok(table) => return Ok((table, used + 1)),
            Err(cause) => fault = fault.or(Some(cause)),
        }
    }
    let written = text.lines().next().unwrap_or_default();
    let cause = fault.unwrap_or_default();
    let message =
        format!("expected TOML in line {}: got {}: {cause}; {EXAMPLE}", first + 1, quoted(written.trim_end()));
    Err(Refused::dependency(message))
}

fn check_length(text: &str, line: usize) -> Result<(), Refused> {
    if text.len() <= MAX_BYTES {
        return Ok(());
    }
    let message = format!("expected at most {MAX_BYTES} bytes in the declaration of line {}: {EXAMPLE}", line + 1);
    Err(Refused::dependency(message))
}

fn parse(text: &str) -> Result<Table, String> {
    text.parse::<Table>().map_err(|cause| {
        let words: Vec<&str> = cause.message().lines().map(str::trim).collect();
        words.join(", ").chars().filter(|letter| !letter.is_control()).take(200).collect()
    })
}

/// A block of PEP 723, by its lines.
struct Block {
    first: usize,
    last: usize,
    text: String,
}

impl Block {
    fn all(lines: &[&str]) -> Result<Vec<Self>, Refused> {
        let mut blocks = Vec::new();
        let mut next = 0;
        while let Some(line) = lines.get(next) {
            if !opens(line) {
                next += 1;
                continue;
            }
            let within = |line: &&&str| **line == "#" || line.starts_with("# ") || line.trim_end() == "#";
            let inner: Vec<&str> = lines.iter().skip(next + 1).take_while(within).copied().collect();
            let Some(end) = inner.iter().rposition(|line| line.trim_end() == "# ///") else {
                let message =
                    format!("the block of line {} is not closed: end it with the line # ///, or {EXAMPLE}", next + 1);
                return Err(Refused::dependency(message));
            };
            let inner = inner.get(..end).unwrap_or_default();
            if let Some(second) = inner.iter().position(|line| opens(line)) {
                return Err(twice("# /// script", next + 1 + second));
            }
            let text = inner.iter().map(|line| line.get(2..).unwrap_or_default());
            let text = text.collect::<Vec<_>>().join("\n");
            blocks.push(Self { first: next, last: next + end + 1, text });
            next += end + 2;
        }
        Ok(blocks)
    }

    fn table(&self) -> Result<Table, Refused> {
        check_length(&self.text, self.first)?;
        parse(&self.text).map_err(|cause| {
            let line = self.first + 1;
            Refused::dependency(format!("expected TOML in the block of line {line}: got a fault: {cause}; {EXAMPLE}"))
        })
    }
}

fn opens(line: &str) -> bool {
    line.trim_end() == "# /// script"
}

fn is_assigned(text: &str, key: &str) -> bool {
    text.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
}

/// Whether a line of comment would set up an installer, were it not in a comment. Prose is let alone.
fn is_setting(text: &str) -> bool {
    let is_key = |key: &str| {
        !key.is_empty() && key.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-\"' ".contains(letter))
    };
    let first = |key: &str| key.split('.').next().unwrap_or_default().trim_matches(['"', '\'', ' ']).to_owned();
    let text = text.split('#').next().unwrap_or_default().trim();
    if let Some(table) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let table = table.trim_start_matches('[').trim_end_matches(']').trim();
        return is_key(table) && TABLES.contains(&first(table).as_str());
    }
    let Some((key, _)) = text.split_once('=') else { return false };
    let key = key.trim();
    is_key(key) && (SETTINGS.contains(&first(key).as_str()) || (key.contains('.') && first(key) == "tool"))
}

fn unknown(key: &str, line: usize) -> Refused {
    let line = line + 1;
    let key = quoted(key);
    Refused::dependency(format!(
        "expected only dependencies and requires-python: got {key} in line {line}: nothing else can be set up by a script"
    ))
}

fn twice(what: &str, line: usize) -> Refused {
    let line = line + 1;
    Refused::dependency(format!("expected one declaration: got {what} again in line {line}: put all into one"))
}
