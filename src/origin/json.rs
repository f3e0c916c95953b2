//! The leaves of a JSON text with their places in it.

/// What stands in a JSON text, in its order. Places are in bytes, without the quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Open {
        is_array: bool,
    },
    Close,
    Key {
        start: usize,
        end: usize,
    },
    Text {
        start: usize,
        end: usize,
    },
    /// A number, `true`, `false` or `null`.
    Literal {
        start: usize,
        end: usize,
    },
}

/// Whether a text is one JSON value that has leaves of its own: an object, a list or a string.
pub(crate) fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[', '"']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Calls `each` with the pieces of a valid JSON text.
pub(crate) fn pieces(text: &str, mut each: impl FnMut(Piece)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'{' | b'[' => each(Piece::Open { is_array: byte == b'[' }),
            b'}' | b']' => each(Piece::Close),
            b'"' => {
                at = closing_quote(bytes, at);
                let (start, end) = (start + 1, at);
                at += 1;
                let next = bytes.iter().skip(at).find(|byte| !byte.is_ascii_whitespace());
                each(if next == Some(&b':') { Piece::Key { start, end } } else { Piece::Text { start, end } });
            }
            b',' | b':' => {}
            space if space.is_ascii_whitespace() => {}
            _ => {
                let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
                at = bytes.iter().skip(at).position(is_end).map_or(bytes.len(), |length| at + length);
                each(Piece::Literal { start, end: at });
            }
        }
    }
}

fn closing_quote(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Calls `each` with every character of a JSON string and the bytes that it has in its raw text.
fn unescaped(raw: &str, mut each: impl FnMut(char, usize, usize)) {
    let hex = |at: usize| raw.get(at..at + 4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let mut at = 0;
    while let Some(c) = raw.get(at..).and_then(|rest| rest.chars().next()) {
        let start = at;
        at += c.len_utf8();
        let mut meant = c;
        if c == '\\' {
            let Some(kind) = raw.get(at..).and_then(|rest| rest.chars().next()) else { return };
            at += kind.len_utf8();
            meant = match kind {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'u' => {
                    let high = hex(at).unwrap_or(0xfffd);
                    at += 4;
                    let low = (raw.get(at..at + 2) == Some("\\u")).then(|| hex(at + 2)).flatten();
                    match low {
                        Some(low) if (0xd800..0xdc00).contains(&high) && (0xdc00..0xe000).contains(&low) => {
                            at += 6;
                            char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)).unwrap_or('\u{fffd}')
                        }
                        _ => char::from_u32(high).unwrap_or('\u{fffd}'),
                    }
                }
                other => other,
            };
        }
        each(meant, start, at);
    }
}

/// The text of a JSON string.
pub(crate) fn decode(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    unescaped(raw, |c, _, _| text.push(c));
    text
}

/// Where a span of the decoded text stands in the raw one.
pub(crate) fn raw_span(raw: &str, span: (usize, usize)) -> (usize, usize) {
    let (mut start, mut end, mut decoded) = (None, raw.len(), 0);
    unescaped(raw, |c, from, to| {
        if decoded >= span.0 && start.is_none() {
            start = Some(from);
        }
        decoded += c.len_utf8();
        if decoded == span.1 {
            end = to;
        }
    });
    (start.unwrap_or(raw.len()), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_their_places() {
        let text = r#"{"a": [1, "x\"y"], "b": null}"#;
        assert!(is_json(text));
        let mut found = Vec::new();
        pieces(text, |piece| {
            found.push(match piece {
                Piece::Open { .. } => "(".to_owned(),
                Piece::Close => ")".to_owned(),
                Piece::Key { start, end } => format!("{}:", text.get(start..end).unwrap()),
                Piece::Text { start, end } | Piece::Literal { start, end } => text.get(start..end).unwrap().to_owned(),
            });
        });
        assert_eq!(found, ["(", "a:", "(", "1", r#"x\"y"#, ")", "b:", "null", ")"]);
    }

    #[test]
    fn spans_lead_back_through_escapes() {
        let raw = r"a\nb\u00e9\ud83d\ude00z\ud800q";
        let text = decode(raw);
        assert_eq!(text, "a\nb\u{e9}\u{1f600}z\u{fffd}q");
        for (at, c) in text.char_indices() {
            let (start, end) = raw_span(raw, (at, at + c.len_utf8()));
            assert_eq!(decode(raw.get(start..end).unwrap()), c.to_string());
        }
    }
}
