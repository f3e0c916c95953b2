//! Origins in the log: lists without trailing empty items.
//!
//! `["result","T3",[412,431],"/rows/2/mail","exact","u"]`; flags: `u` untrusted, `w` weak. Then follow, where there
//! are any, the other places `["task","",[3,9],null,""]` and the pieces `[[10,24],"none","",""]`.

use super::from::{How, Kind, Origin, Piece, Place};
use serde::de::{Error as _, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::sync::Arc;

const EXPECTED: &str = "an origin as a list of its kind, place, span, pointer, rule and flags";

fn flags(untrusted: bool, weak: bool) -> Value {
    Value::from(format!("{}{}", if untrusted { "u" } else { "" }, if weak { "w" } else { "" }))
}

fn word(of: impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}

fn trimmed(mut items: Vec<Value>) -> Value {
    let is_empty = |item: &Value| match item {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    while items.len() > 1 && items.last().is_some_and(is_empty) {
        items.pop();
    }
    Value::Array(items)
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let how = if self.how == How::Other { Value::Null } else { word(self.how) };
        let of = |place: &Place| {
            trimmed(vec![
                word(place.kind),
                word(&place.place),
                word(place.span),
                word(&place.pointer),
                flags(place.untrusted, false),
            ])
        };
        let piece = |piece: &Piece| {
            trimmed(vec![word(piece.span), word(piece.kind), word(&piece.place), flags(piece.untrusted, false)])
        };
        trimmed(vec![
            word(self.kind),
            word(&self.place),
            word(self.span),
            word(&self.pointer),
            how,
            flags(self.untrusted, self.weak),
            Value::Array(self.others.iter().map(of).collect()),
            Value::Array(self.pieces.iter().map(piece).collect()),
        ])
        .serialize(serializer)
    }
}

/// The items of a list in a log; those that an older or newer version doesn't have, or has in another form, are empty.
struct Items(Vec<Value>);

impl Items {
    fn of(value: Value) -> Option<Self> {
        if let Value::Array(items) = value { Some(Self(items)) } else { None }
    }

    fn at<T: for<'a> Deserialize<'a>>(&self, at: usize) -> Option<T> {
        self.0.get(at).and_then(|item| T::deserialize(item.clone().into_deserializer()).ok())
    }

    fn kind(&self, at: usize) -> Kind {
        self.at(at).unwrap_or(Kind::Unknown)
    }

    fn place(&self, at: usize) -> Arc<str> {
        Arc::from(self.at::<String>(at).unwrap_or_default())
    }

    fn has(&self, at: usize, flag: char) -> bool {
        self.at::<String>(at).is_some_and(|flags| flags.contains(flag))
    }

    fn lists(&self, at: usize) -> impl Iterator<Item = Items> {
        self.at::<Vec<Value>>(at).unwrap_or_default().into_iter().filter_map(Items::of)
    }
}

impl<'de> Deserialize<'de> for Origin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let items = Items::of(value).filter(|items| items.at::<String>(0).is_some());
        let items = items.ok_or_else(|| D::Error::custom(format!("expected {EXPECTED}: got something else")))?;
        let place = |of: Items| Place {
            kind: of.kind(0),
            place: of.place(1),
            span: of.at(2),
            pointer: of.at(3),
            untrusted: of.has(4, 'u'),
        };
        let piece = |of: Items| {
            Some(Piece { span: of.at(0)?, kind: of.kind(1), place: of.place(2), untrusted: of.has(3, 'u') })
        };
        Ok(Self {
            kind: items.kind(0),
            place: items.place(1),
            span: items.at(2),
            pointer: items.at(3),
            how: items.at(4).unwrap_or(How::Other),
            weak: items.has(5, 'w'),
            untrusted: items.has(5, 'u'),
            others: items.lists(6).map(place).collect(),
            pieces: items.lists(7).filter_map(piece).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Origin {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn the_compact_form_goes_there_and_back() {
        for text in [
            r#"["result","T3",[412,431],"/rows/2/mail","exact","u"]"#,
            r#"["none"]"#,
            r#"["task","",[3,9],null,"date"]"#,
            r#"["result","T1",[3,4],null,"number","uw",[["result","T2",[1,2],"/a"],["task","",[0,2],null,"u"]]]"#,
            r#"["composed","",null,null,null,"u",[],[[[10,24],"result","T1","u"],[[3,9],"none"]]]"#,
        ] {
            assert_eq!(serde_json::to_string(&read(text)).unwrap(), text);
        }
    }

    #[test]
    fn unknown_words_are_unknown() {
        let origin = read(r#"["dream","T3",[1,2],null,"intuition","x",[],[],"more"]"#);
        assert_eq!((origin.kind, origin.how, origin.untrusted), (Kind::Unknown, How::Other, false));
        assert!(origin.is_stated());
        assert!(serde_json::from_str::<Origin>("{}").is_err());
        assert!(serde_json::from_str::<Origin>("[]").is_err());
    }
}
