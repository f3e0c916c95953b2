//! What opens on a line before a move, shows what follows and never closes: comments, verbatim text, documents.

use super::pairs::is_shown;

/// What opens at the beginning of a line, and what closes it. Nothing is stuck to an opening, but to one that ends with a
/// bracket.
const OPENINGS: [(&str, &str); 33] = [
    ("<!--", "-->"),
    ("<![CDATA[", "]]>"),
    ("/*", "*/"),
    ("/**", "*/"),
    ("{#", "#}"),
    ("{#-", "#}"),
    ("{{!", "}}"),
    ("{{!--", "--}}"),
    ("<%--", "--%>"),
    ("<#", "#>"),
    ("#|", "|#"),
    ("#=", "=#"),
    ("(*", "*)"),
    ("{-", "-}"),
    ("--[[", "]]"),
    ("=begin", "=end"),
    ("=pod", "=cut"),
    ("\\begin{", "\\end{"),
    ("\\iffalse", "\\fi"),
    ("#if", "#endif"),
    ("#ifdef", "#endif"),
    ("#ifndef", "#endif"),
    ("<<<<<<<", ">>>>>>>"),
    ("{% comment", "{% end"),
    ("{% raw", "{% end"),
    ("{% verbatim", "{% end"),
    ("{% if", "{% end"),
    ("{% unless", "{% end"),
    ("{%- comment", "end"),
    ("{%- raw", "end"),
    ("{%- if", "end"),
    ("{{#if", "{{/if"),
    ("{{#unless", "{{/unless"),
];
/// Quotes of a text over several lines.
const LONG_QUOTES: [&str; 2] = ["\"\"\"", "'''"];
/// The longest word that ends a here-document.
const LONGEST_WORD: usize = 20;

/// Whether something opens before the move that shows what follows, wherever it ends.
pub(super) fn is_open(left: &str) -> bool {
    let (mut at, mut closed) = (0, 0);
    for line in left.split_inclusive('\n') {
        at += line.len();
        if at <= closed {
            continue;
        }
        let Some((after, closing)) = opening(line.trim_start()) else { continue };
        let from = at - after.len();
        match left.get(from..).and_then(|rest| rest.find(closing)) {
            Some(length) => closed = from + length,
            None => return true,
        }
    }
    let end = left.trim_end();
    let quoted = |quote: &str| {
        let alone = |line: &str| !line.contains(['`', '.']);
        end.ends_with(quote) && end.lines().next_back().is_some_and(alone) && end.matches(quote).count() % 2 == 1
    };
    LONG_QUOTES.iter().any(|quote| quoted(quote)) || in_open_document(left) || in_open_fence(left)
}

/// What follows the opening that a line begins with, and what closes it.
fn opening(line: &str) -> Option<(&str, &'static str)> {
    if !line.starts_with(['<', '/', '{', '#', '(', '-', '=', '\\']) {
        return None;
    }
    OPENINGS.iter().find_map(|(opening, closing)| {
        let after = line.strip_prefix(opening)?;
        let apart = opening.ends_with(['{', '[']) && opening.len() > 2;
        (apart || !after.starts_with(|c: char| !c.is_whitespace())).then_some((after, *closing))
    })
}

/// A here-document of a shell whose last line is not there: `cat <<'EOF'`.
fn in_open_document(left: &str) -> bool {
    let Some(at) = left.rfind("<<") else { return false };
    let rest = left.get(at + 2..).unwrap_or("").trim_start_matches(['-', '~', '\'', '"', '\\']);
    let word = rest.get(..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())).unwrap_or("");
    let behind = rest.get(word.len()..).unwrap_or("");
    let named = (2..LONGEST_WORD).contains(&word.len()) && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    named
        && !behind.starts_with('>')
        && behind.contains('\n')
        && !behind.lines().skip(1).any(|line| line.trim() == word)
}

/// Whether a fence is open that shows something: differences, whose lines are added or taken away, or an example.
fn in_open_fence(left: &str) -> bool {
    let mut open = None;
    for line in left.lines() {
        let line = line.trim_start();
        let word = line.trim_start_matches(['`', '~']);
        if line.len() - word.len() >= 3 {
            open = if open.is_some() { None } else { Some(word) };
        }
    }
    open.is_some_and(is_shown)
}
