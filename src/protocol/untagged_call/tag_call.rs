//! Calls that are written with tags.

use super::{Tools, forms};

/// Elements of HTML: their text is a page, and no call.
const HTML: [&str; 62] = [
    "a",
    "abbr",
    "article",
    "aside",
    "b",
    "blockquote",
    "body",
    "br",
    "button",
    "caption",
    "code",
    "dd",
    "del",
    "details",
    "div",
    "dl",
    "dt",
    "em",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "i",
    "img",
    "kbd",
    "label",
    "li",
    "main",
    "mark",
    "nav",
    "ol",
    "option",
    "p",
    "pre",
    "s",
    "samp",
    "section",
    "select",
    "small",
    "span",
    "strong",
    "sub",
    "summary",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "title",
    "tr",
    "u",
    "ul",
];
/// Bytes of a tag.
const TAG: usize = 200;

/// Whether the text is an element that names a tool, or tags around a call.
pub(super) fn is_call(text: &str, tools: &Tools<'_>) -> bool {
    let Some(first) = tag(text) else { return false };
    if is_html(first) || first.starts_with('!') {
        return false;
    }
    let inside = text.get(first.len() + 2..).unwrap_or("");
    if forms::is_plain_call(without_tags(inside), tools) {
        return true;
    }
    text.ends_with('>') && names_a_tool(text, tools) || begins_calls(first) && begins_with_a_tool(inside, tools)
}

/// Whether a tag or token says that calls begin: what follows may be cut anywhere.
fn begins_calls(tag: &str) -> bool {
    let words = tag.split(|c: char| !c.is_alphabetic()).map(str::to_ascii_lowercase);
    let mut said =
        words.filter(|word| matches!(word.as_str(), "action" | "call" | "calls" | "function" | "invoke" | "tool"));
    !tag.starts_with('/') && said.next().is_some()
}

/// Bytes before the name of the tool in a call that is cut.
const HEAD: usize = 120;

/// Whether the name of a tool is among the first words, and nothing but marks and keys before it.
fn begins_with_a_tool(inside: &str, tools: &Tools<'_>) -> bool {
    const KEYS: [&str; 9] =
        ["call", "function", "functions", "id", "index", "name", "tool", "tool_call_id", "tool_name"];
    let end = inside.char_indices().map(|(at, _)| at).nth(HEAD).unwrap_or(inside.len());
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    for part in inside.get(..end).unwrap_or("").split(|c: char| !word(c)).filter(|part| !part.is_empty()) {
        if tools.names(part) {
            return true;
        }
        let number = part.chars().all(|c| c.is_ascii_digit());
        if !number && !KEYS.contains(&part.to_ascii_lowercase().as_str()) {
            return false;
        }
    }
    false
}

/// What stands between `<` and `>` at the beginning of the text.
fn tag(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('<')?;
    let end = inside.find('>').filter(|end| *end <= TAG)?;
    inside.get(..end).filter(|tag| !tag.is_empty() && !tag.starts_with(char::is_whitespace))
}

fn name(tag: &str) -> &str {
    let tag = tag.strip_prefix('/').unwrap_or(tag);
    tag.split(|c: char| c.is_whitespace() || matches!(c, '/' | '=')).next().unwrap_or("")
}

fn is_html(tag: &str) -> bool {
    HTML.contains(&name(tag).to_ascii_lowercase().as_str())
}

/// The text without the tags that it begins and ends with.
fn without_tags(text: &str) -> &str {
    let mut text = text.trim();
    while let Some(tag) = tag(text).filter(|tag| !is_html(tag)) {
        text = text.get(tag.len() + 2..).unwrap_or("").trim_start();
    }
    while text.ends_with('>') {
        let Some(start) = text.rfind('<').filter(|start| text.len() - start <= TAG) else { break };
        text = text.get(..start).unwrap_or("").trim_end();
    }
    text
}

/// Whether a tag has the name of a tool or holds it as a whole attribute, or an element holds it and nothing else.
fn names_a_tool(text: &str, tools: &Tools<'_>) -> bool {
    let mut rest = text;
    let mut before = "";
    while let Some(at) = rest.find('<') {
        let content = rest.get(..at).unwrap_or("");
        let line = content.trim_start().lines().next().unwrap_or("").trim();
        if !before.is_empty() && !before.starts_with('/') && !is_html(before) && tools.names(line) {
            return true;
        }
        rest = rest.get(at..).unwrap_or("");
        let Some(found) = tag(rest) else {
            rest = rest.get(1..).unwrap_or("");
            continue;
        };
        before = found;
        let attribute = |part: &str| {
            let value = part.split_once('=').map_or("", |(_, value)| value);
            tools.names(value.trim_matches(['"', '\'', '/', ' ']))
        };
        if !found.starts_with('/') && (tools.names(name(found)) || found.split_whitespace().any(attribute)) {
            return true;
        }
        rest = rest.get(found.len() + 2..).unwrap_or("");
    }
    false
}
