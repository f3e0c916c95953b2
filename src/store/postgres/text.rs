//! Texts as `PostgreSQL` keeps them: it has no character 0, so that one is written as two others.

use std::borrow::Cow;

/// A code point that is no character, so that hardly any text has it; where one does, it is doubled in its own way.
const ESCAPE: char = '\u{FDD0}';

/// The text without character 0.
pub(super) fn encode(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut encoded = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => encoded.extend([ESCAPE, '0']),
            ESCAPE => encoded.extend([ESCAPE, '1']),
            other => encoded.push(other),
        }
    }
    Cow::Owned(encoded)
}

/// The text that was encoded.
pub(super) fn decode(text: String) -> String {
    if !text.contains(ESCAPE) {
        return text;
    }
    let mut decoded = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ESCAPE if characters.next() == Some('0') => decoded.push('\0'),
            other => decoded.push(other),
        }
    }
    decoded
}

/// JSON whose texts were encoded.
pub(super) fn decode_json(json: String) -> String {
    if !json.contains(ESCAPE) {
        return json;
    }
    json.replace("\u{FDD0}0", "\\u0000").replace("\u{FDD0}1", "\u{FDD0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back() {
        for text in ["", "a", "\0", "a\0b\0", "\u{FDD0}", "\u{FDD0}0", "\0\u{FDD0}1\u{1F600}"] {
            let encoded = encode(text);
            assert!(!encoded.contains('\0'));
            assert_eq!(decode(encoded.into_owned()), text);
        }
    }
    #[test]
    fn every_text_comes_back_from_json() {
        for text in ["a", "a\0b\0", "\u{FDD0}", "\u{FDD0}0", "\0\u{FDD0}1"] {
            let json = serde_json::to_string(&encode(text)).expect("a text");
            let decoded: String = serde_json::from_str(&decode_json(json)).expect("JSON");
            assert_eq!(decoded, text);
        }
    }
}
