//! A tool block in a fence behind one line of narration in quotes. Prompts of this protocol show a turn so, and whoever
//! explains how a call is written does not put the explanation in quotes.

/// The longest such line, and the most blanks behind it: a reply that arrives in pieces is looked at once for each.
const LINE: usize = 400;
const BLANKS: usize = 8;

/// What the beginning of a reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beginning {
    /// It may become such a line with a fence.
    Open,
    /// The line is there, and the fence begins at this place.
    Fence(usize),
    Other,
}

/// What `text` begins with.
pub(super) fn beginning(text: &str) -> Beginning {
    let close = match text.chars().next() {
        Some('"') => '"',
        Some('“') => '”',
        _ => return Beginning::Other,
    };
    let Some((line, rest)) = text.split_once('\n') else {
        let plain = text.len() <= LINE && !text.contains(['`', '<']);
        return if plain { Beginning::Open } else { Beginning::Other };
    };
    let line = line.trim_end();
    let inside = line.strip_suffix(close).and_then(|line| line.get(close.len_utf8()..));
    let quoted = inside.is_some_and(|inside| !inside.trim().is_empty() && !inside.contains(['`', '<', '"', close]));
    let fence = rest.trim_start();
    if line.len() > LINE || !quoted || rest.len() - fence.len() > BLANKS {
        return Beginning::Other;
    }
    if ["```", "~~~"].iter().any(|ticks| fence.starts_with(ticks)) {
        return Beginning::Fence(text.len() - fence.len());
    }
    if ["```", "~~~"].iter().any(|ticks| ticks.starts_with(fence)) { Beginning::Open } else { Beginning::Other }
}

#[cfg(test)]
mod tests {
    use super::{Beginning, LINE, beginning};

    #[test]
    fn only_one_line_in_quotes_before_a_fence_counts() {
        assert_eq!(beginning("\"I go on.\"\n```\n"), Beginning::Fence(11));
        assert_eq!(beginning("“I go on.”  \n\n~~~\n"), Beginning::Fence("“I go on.”  \n\n".len()));
        for text in ["\"I go", "\"I go on.\"\n", "\"I go on.\"\n``"] {
            assert_eq!(beginning(text), Beginning::Open, "{text:?}");
        }
        let long = format!("\"{}\"\n```\n", "x".repeat(LINE));
        for text in [
            "I go on.\n```\n",
            "\"I go on.\n```\n",
            "\"Use `x`.\"\n```\n",
            "\"A\" and \"B\"\n```\n",
            "\"I go on.\" So:\n```\n",
            "\"I go on.\"\nSo:\n```\n",
            "\"\"\n```\n",
            "\"I go on.\"\n\n\n\n\n\n\n\n\n\n```\n",
            &long,
        ] {
            assert_eq!(beginning(text), Beginning::Other, "{text:?}");
        }
    }

    #[test]
    fn a_longer_text_never_begins_otherwise_than_its_part() {
        let whole = "\"I go on.\"\n\n```\n<tool>";
        for end in 1..whole.len() {
            assert_ne!(beginning(whole.get(..end).unwrap_or("")), Beginning::Other, "{end}");
        }
    }
}
