//! Blocks that a reply only shows: in a quotation, in indented code, in tags and comments of HTML. Fences and backticks
//! are the envelope's.

use super::wrong_tags::form;
use crate::protocol::{Code, Violation};
use crate::reply::tag::Tag;
use crate::reply::{BoxedViolation, Span};

/// How HTML shows text, and where that ends.
const HTML: [(&str, &str, &str); 4] = [
    ("<pre", "</pre>", "in <pre>"),
    ("<code", "</code>", "in <code>"),
    ("<details", "</details>", "in <details>"),
    ("<!--", "-->", "in a comment"),
];
/// Blanks that begin indented code.
const INDENT: usize = 4;

/// Where a block stands whose tag begins at `at`, if it is only shown there.
pub(in crate::protocol) fn place(text: &str, at: usize) -> Option<&'static str> {
    let before = text.get(..at)?;
    let line = before.get(before.rfind('\n').map_or(0, |end| end + 1)..)?;
    if line.trim_start().starts_with('>') {
        return Some("in a quotation");
    }
    if is_code(before, line) {
        return Some("in indented code");
    }
    HTML.iter().find_map(|(open, close, place)| {
        let start = before.rfind(open)?;
        let after = before.get(start + open.len()..)?;
        let begins = *open == "<!--" || after.starts_with(['>', ' ', '\n']);
        (begins && !after.contains(close)).then_some(*place)
    })
}

/// Whether a line that begins so is indented code of Markdown: after text and an empty line, and not in a list.
fn is_code(before: &str, line: &str) -> bool {
    let width: usize = line.chars().map(|c| if c == '\t' { INDENT } else { 1 }).sum();
    if !line.trim().is_empty() || width < INDENT {
        return false;
    }
    let above = before.get(..before.len() - line.len()).unwrap_or("");
    let prose = above.trim_end();
    let empty = above.get(prose.len()..).is_some_and(|blanks| blanks.matches('\n').count() > 1);
    let last = prose.lines().next_back().unwrap_or("");
    let in_list = last.starts_with([' ', '\t', '-', '*', '+']) || last.starts_with(|c: char| c.is_ascii_digit());
    empty && !last.is_empty() && !in_list
}

/// The violation of such a block.
pub(super) fn fault(place: &str, tag: Span, own: (&Tag, &Tag)) -> BoxedViolation {
    let message = format!("expected the tool block by itself: got it {place}, where it may only be shown");
    Box::new(
        Violation::new(Code::QuotedMove, message).at(tag).expected(form(own)).hint(
            "write the block at the beginning of a line with nothing around it, or put what is shown in backticks",
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn a_block_is_shown_by_what_stands_around_it() {
        for text in ["> ", "so\n> ", "<pre>", "<pre class=\"x\">\n", "<code>", "<!-- ", "So:\n\n    ", "So:\n\n\t"] {
            assert!(place(&format!("{text}<tool>"), text.len()).is_some(), "{text:?}");
        }
        for text in [
            "",
            "    ",
            "\n\n    ",
            "a > b ",
            "<pre>x</pre> ",
            "<prefix>",
            "<!-- x --> ",
            "So:\n    ",
            "1. go\n\n    ",
            "- a\n\n    ",
            "So:\n\n   ",
        ] {
            assert!(place(&format!("{text}<tool>"), text.len()).is_none(), "{text:?}");
        }
    }
}
