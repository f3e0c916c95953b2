//! JSON text inside a string: read strictly, because its meaning must not be a guess.

use super::json::{JsonReader, Progress, Settings};
use super::{ReadLimits, RepairPolicy, Value};

/// Nesting beyond this is refused, as in a reply.
const DEPTH: usize = 128;

/// Reads one whole JSON value; `None` if the text is not JSON, is nested too deep or has a key twice.
pub(crate) fn parse(text: &str) -> Option<Value> {
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    let limits = ReadLimits { depth: DEPTH, ..ReadLimits::none() };
    let mut reader = JsonReader::new(Settings::new(RepairPolicy::Strict, limits), 0);
    let whole = reader.run(text, true) == Progress::Done && reader.position() == text.len();
    whole.then(|| reader.into_value().0)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn numbers_keep_their_spelling() {
        let text = r#"{"a":[1.0,1e3,123456789012345678901234567890],"b":{"c":null,"d":"x\ny"}}"#;
        assert_eq!(parse(text).unwrap().to_json(), text);
        assert_eq!(parse(" [ ] ").unwrap().to_json(), "[]");
    }

    #[test]
    fn what_is_not_exactly_one_value_is_refused() {
        for text in ["", "{", "{} {}", "[1,]", "NaN", "{'a':1}", r#"{"a":1,"a":2}"#, r#"[{"a":{"b":1,"b":1}}]"#] {
            assert!(parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_before_it_is_read() {
        assert!(parse(&"[".repeat(1 << 20)).is_none());
        assert!(parse(&("[".repeat(129) + &"]".repeat(129))).is_none());
        assert!(parse(&("[".repeat(128) + &"]".repeat(128))).is_some());
    }
}
