//! Calls that are written like those of a programming language.

use super::{Tools, is_parameter};
use crate::tool::ToolSpec;

/// What may stand before a call.
const BEFORE: [&str; 3] = ["await ", "return ", "print("];
/// Methods by which some models call a tool.
const METHODS: [&str; 5] = [".call", ".run", ".invoke", ".execute", ".__call__"];

/// Whether the text is calls of tools, one after the other, and nothing else.
pub(super) fn are_calls(text: &str, tools: &Tools<'_>) -> bool {
    let mut rest = text;
    let mut any = false;
    while !rest.is_empty() {
        let Some((after, named)) = one(rest, tools) else { return false };
        any |= named;
        rest = after.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
        if !rest.is_empty() && !after.trim_start_matches([' ', '\t']).starts_with([',', ';', '\n', '\r']) {
            return false;
        }
    }
    any
}

/// Whether a call of a tool stands anywhere in the text.
pub(super) fn holds_a_call(text: &str, tools: &Tools<'_>) -> bool {
    text.match_indices('(').any(|(at, _)| {
        let before = text.get(..at).unwrap_or("");
        let name = before.rsplit(|c: char| !is_word(c)).next().unwrap_or("");
        !name.is_empty() && called(name, tools).is_some()
    })
}

/// Reads one call. Returns what stands behind it, and whether it is one of a tool.
fn one<'a>(text: &'a str, tools: &Tools<'_>) -> Option<(&'a str, bool)> {
    let mut rest = text;
    let mut printed = false;
    while let Some(before) = BEFORE.iter().find(|before| rest.starts_with(**before)) {
        printed |= before.ends_with('(');
        rest = rest.get(before.len()..)?.trim_start();
    }
    let name = rest.get(..rest.find(|c: char| !is_word(c))?)?;
    let inside = rest.get(name.len()..)?.strip_prefix('(')?;
    if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return None;
    }
    let length = arguments(inside);
    let given = inside.get(..length)?;
    let after = inside.get(length..)?.strip_prefix(')').unwrap_or("");
    let after = if printed { after.trim_start().strip_prefix(')').unwrap_or(after) } else { after };
    let tool = called(name, tools)?;
    (!is_signature(given, tool)).then_some((after, true))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '-')
}

fn called<'a>(name: &str, tools: &'a Tools<'_>) -> Option<&'a ToolSpec> {
    let by_method = || METHODS.iter().find_map(|method| tools.get(name.strip_suffix(method)?));
    tools.get(name).or_else(by_method)
}

/// The length of the arguments up to the bracket that closes them, or of all text.
fn arguments(text: &str) -> usize {
    let (mut depth, mut quote, mut escaped) = (0_usize, None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), _) if open == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')') if depth == 0 => return at,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    text.len()
}

/// Whether the arguments are those of a signature: names of parameters, perhaps with types, or an ellipsis.
fn is_signature(given: &str, tool: &ToolSpec) -> bool {
    let given = given.trim();
    if given.is_empty() {
        return false;
    }
    if given.contains("...") || given.contains('…') {
        return true;
    }
    let plain = |part: &str| {
        let name = part.split([':', '?', '=']).next().unwrap_or("").trim();
        let typed = part.contains(':') || !part.contains('=');
        typed && is_parameter(tool, name)
    };
    !given.contains(['"', '\'', '{', '`']) && given.split(',').filter(|part| !part.trim().is_empty()).all(plain)
}
