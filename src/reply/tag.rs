//! Tags and control tokens: whether a text begins with one, and whether it is complete.

use compact_str::{CompactString, format_compact};

/// Blanks that are forgiven at one place of a tag.
const BLANKS: usize = 8;
/// Bytes of attributes that are forgiven in a tag that may have them.
const ATTRIBUTES: usize = 120;

/// Whether a tag stands at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// There is no tag.
    No,
    /// There may be one once more text has arrived.
    Partial,
    /// There is a complete tag.
    Yes {
        /// Its length in bytes.
        length: usize,
        /// It is written exactly as configured.
        exact: bool,
    },
}

/// One tag, found in any case and, if it has the form `<name>`, with blanks inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    literal: CompactString,
    attributes: bool,
    /// Its first two bytes: most places are passed over by these.
    head: [u8; 2],
}

impl Tag {
    /// The tag that is written like `literal`.
    pub fn new(literal: impl Into<CompactString>) -> Self {
        let literal = literal.into();
        let mut bytes = literal.bytes();
        let head = [bytes.next().unwrap_or(b'<'), bytes.next().unwrap_or(0)];
        Self { literal, attributes: false, head }
    }

    /// The start tag `<name>`, which may have attributes.
    pub fn open(name: &str) -> Self {
        Self { attributes: true, ..Self::new(format_compact!("<{name}>")) }
    }

    /// The end tag `</name>`.
    pub fn close(name: &str) -> Self {
        Self::new(format_compact!("</{name}>"))
    }

    /// How it is written.
    pub fn literal(&self) -> &str {
        &self.literal
    }

    /// The first byte of its literal.
    pub fn first(&self) -> u8 {
        self.head[0]
    }

    /// Whether a text that begins with this byte may begin with the tag.
    pub fn may_begin(&self, byte: u8) -> bool {
        self.head[0].eq_ignore_ascii_case(&byte)
    }

    /// Whether it stands at the beginning of `rest`; `end` says that no more text will come.
    pub fn at(&self, rest: &str, end: bool) -> Match {
        let partial = if end { Match::No } else { Match::Partial };
        let [first, second] = self.head;
        let differs = |at: usize, wanted: u8| {
            rest.as_bytes()
                .get(at)
                .is_some_and(|byte| !byte.eq_ignore_ascii_case(&wanted) && (at == 0 || !byte.is_ascii_whitespace()))
        };
        if differs(0, first) || self.literal.len() > 1 && differs(1, second) {
            return Match::No;
        }
        if rest.starts_with(&*self.literal) {
            return Match::Yes { length: self.literal.len(), exact: true };
        }
        let angled = self.literal.starts_with('<') && self.literal.ends_with('>');
        let rest = rest.as_bytes();
        let mut position = 0;
        let mut exact = true;
        let mut before = 0_u8;
        for wanted in self.literal.bytes() {
            if angled && (matches!(before, b'<' | b'/') || wanted == b'>') {
                let blanks = rest.iter().skip(position).take_while(|byte| byte.is_ascii_whitespace()).count();
                if blanks > BLANKS {
                    return Match::No;
                }
                exact &= blanks == 0;
                position += blanks;
                if self.attributes
                    && wanted == b'>'
                    && blanks > 0
                    && rest.get(position).is_some_and(|&byte| byte != b'>')
                {
                    let mut more = rest.iter().skip(position).take(ATTRIBUTES);
                    match more.position(|byte| matches!(byte, b'<' | b'>' | b'\n')) {
                        Some(offset) => position += offset,
                        None if rest.len() - position < ATTRIBUTES => return partial,
                        None => return Match::No,
                    }
                }
            }
            match rest.get(position) {
                None => return partial,
                Some(&byte) if byte == wanted => {}
                Some(&byte) if byte.eq_ignore_ascii_case(&wanted) => exact = false,
                Some(_) => return Match::No,
            }
            position += 1;
            before = wanted;
        }
        Match::Yes { length: position, exact }
    }
}

/// Control tokens without a common form.
const NAMED: [&str; 14] = [
    "</s>",
    "<s>",
    "<eos>",
    "<bos>",
    "<end_of_turn>",
    "<start_of_turn>",
    "<EOT>",
    "[EOS]",
    "[/INST]",
    "[INST]",
    "<pad>",
    "<end_of_utterance>",
    "[DONE]",
    "[END FINAL RESPONSE]",
];

/// The length of the chat template's control token that `rest` begins with, such as `<|im_end|>` or `</s>`.
pub fn special_token(rest: &str) -> Option<usize> {
    if !rest.starts_with(['<', '[']) {
        return None;
    }
    for (opening, closing) in [("<|", "|>"), ("<｜", "｜>")] {
        if let Some(inside) = rest.strip_prefix(opening) {
            let length = inside
                .char_indices()
                .take_while(|(at, _)| *at < 48)
                .find(|&(at, c)| c.is_whitespace() || inside.get(at..).is_some_and(|s| s.starts_with(closing)));
            return match length {
                Some((at, c)) if !c.is_whitespace() => Some(opening.len() + at + closing.len()),
                _ => None,
            };
        }
    }
    NAMED.iter().find(|name| rest.starts_with(**name)).map(|name| name.len())
}

/// Whether a control token in angle brackets stands at the beginning of `rest`; `end` says that no more text will come.
pub fn control_token(rest: &str, end: bool) -> Match {
    match special_token(rest) {
        Some(length) => Match::Yes { length, exact: true },
        None if !end && rest.len() < 64 && tokens_only(rest) => Match::Partial,
        None => Match::No,
    }
}

/// Start of the run of control tokens at the end of `text[..until]` (the last may be incomplete), or `until` if there
/// is none.
pub fn unfinished_tokens(text: &str, until: usize) -> usize {
    let Some(before) = text.get(..until) else { return until };
    let mut from = until.saturating_sub(96);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let window = before.get(from..).unwrap_or("");
    let begins = window.char_indices().filter(|(_, c)| matches!(c, '<' | '['));
    begins.map(|(at, _)| at).find(|at| tokens_only(window.get(*at..).unwrap_or(""))).map_or(until, |at| from + at)
}

/// Whether `rest` is control tokens and blanks, the last token perhaps cut.
fn tokens_only(mut rest: &str) -> bool {
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return true;
        }
        let Some(length) = special_token(rest) else {
            let open = ["<|", "<｜"].iter().any(|opening| rest.starts_with(opening) || opening.starts_with(rest));
            let named = NAMED.iter().any(|name| name.starts_with(rest));
            return named || open && rest.len() < 64 && !rest.contains(char::is_whitespace);
        };
        rest = rest.get(length..).unwrap_or("");
    }
}

#[cfg(test)]
mod tests {
    use super::{Match, Tag, special_token};

    #[test]
    fn finds_a_tag_in_any_case_and_with_blanks() {
        let tag = Tag::new("</out>");
        assert_eq!(tag.at("</out> x", false), Match::Yes { length: 6, exact: true });
        assert_eq!(tag.at("< / OUT >", false), Match::Yes { length: 9, exact: false });
        assert_eq!(tag.at("</outer>", false), Match::No);
        assert_eq!(tag.at("</o", false), Match::Partial);
        assert_eq!(tag.at("</o", true), Match::No);
        assert_eq!(Tag::new("[[GO]]").at("[[go]]", false), Match::Yes { length: 6, exact: false });
    }

    #[test]
    fn attributes_are_bounded() {
        let tag = Tag::open("plan");
        assert_eq!(tag.at("<plan depth=\"2\">", false), Match::Yes { length: 16, exact: false });
        assert_eq!(tag.at("<planner>", false), Match::No);
        assert_eq!(tag.at(&format!("<plan {}", "a".repeat(4_000)), false), Match::No);
        assert_eq!(tag.at(&format!("<plan{}", " ".repeat(4_000)), false), Match::No);
    }

    #[test]
    fn knows_control_tokens() {
        assert_eq!(special_token("<|stop_here|> x"), Some(13));
        assert_eq!(special_token("<|a b|>"), None);
        assert_eq!(special_token("<｜fin｜>"), Some("<｜fin｜>".len()));
        assert_eq!(special_token("</s>"), Some(4));
        assert_eq!(special_token("<b>"), None);
    }
}
