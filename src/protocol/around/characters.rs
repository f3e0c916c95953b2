//! Which characters a text holds: most replies have one plain sentence before their move, and hold nothing that a check
//! could find.

/// The characters of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Characters {
    ascii: u128,
    others: bool,
}

impl Characters {
    pub(super) fn of(text: &str) -> Self {
        let ascii = text.bytes().filter(u8::is_ascii).fold(0, |set, byte| set | 1 << byte);
        Self { ascii, others: !text.is_ascii() }
    }

    /// Whether the text holds one of these, or one outside of ASCII, which may stand for any of them.
    pub(super) fn may_hold(self, list: &str) -> bool {
        self.others || list.bytes().any(|byte| self.ascii & 1 << byte != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{conditions, keys};
    use super::Characters;
    use crate::reply::Span;
    use proptest::prelude::*;

    /// Words and signs of which keys and conditions are made.
    const PIECES: [&str; 25] = [
        "args",
        "city",
        "draft",
        "dry_run",
        "if",
        "not",
        "cancelled",
        "true",
        "status",
        " ",
        "\n",
        ":",
        "=",
        "=>",
        "'",
        "\"",
        "`",
        "{",
        "<",
        ">",
        "-",
        "/",
        "*",
        "# ",
        "!",
    ];

    proptest! {
        /// Whatever a check finds holds one of the characters without which it isn't made.
        #[test]
        fn nothing_is_found_without_them(picked in prop::collection::vec(prop::sample::select(&PIECES[..]), 1..9)) {
            let text = picked.concat();
            let (whole, holds) = (Span::new(0, text.len()), Characters::of(&text));
            if keys::find(&text, whole, &["args"], &["city", "dry run"]).is_some() {
                prop_assert!(holds.may_hold(keys::KEY));
            }
            let beside = keys::object_beside(&text, whole, false).or_else(|| conditions::find(&text, whole));
            prop_assert!(beside.is_none() || holds.may_hold(conditions::CONDITION));
        }
    }
}
