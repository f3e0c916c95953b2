//! The conversation of a run that was handed over, as text: words of the user, results, and words of a model.

use super::texts_above::Text;
use crate::origin::{Echo, Kind, Source};
use crate::protocol::{Message, Role};
use serde_json::Value as Json;
use std::sync::Arc;

/// How the first message of such a conversation begins. Python writes it, and what follows.
const BEGUN: &str = "[This conversation was begun by another assistant and is handed over to you: run ";
/// What stands before and behind the lines of a record.
const RECORD: &str = "[What the assistant did then, as its runtime has recorded it.";
const END: &str = "[End of the record.]";
/// What the user or the runtime said in a run whose events are gone.
const TOLD: &str = "It was told by the user or its runtime: ";
/// Outcomes that have the words of a tool; a person who denies a call may repeat its values.
const OUTCOMES: [&str; 5] = [": ok ", ": error ", ": retry ", ": in_doubt ", ": cancelled "];
/// The mark of a result that was cut.
const CUT: &str = " [cut: ";

/// Whether an earlier conversation is that of a run that was handed over.
pub(super) fn is_handed_over(messages: &[Message]) -> bool {
    messages.first().is_some_and(|first| first.content.starts_with(BEGUN))
}

/// The texts of one of its messages. `is_replied` says whether the user has replied to it.
pub(super) fn texts_of(message: &Message, place: &str, is_replied: bool) -> Vec<Text> {
    let mut texts = Texts { place, content: &message.content, found: Vec::new() };
    match message.role {
        Role::Assistant => {
            texts.put(if is_replied { Kind::User } else { Kind::Model }, (0, message.content.len()), None);
        }
        Role::User => texts.read(),
        Role::System => {}
    }
    texts.found
}

struct Texts<'m> {
    place: &'m str,
    content: &'m str,
    found: Vec<Text>,
}

impl Texts<'_> {
    fn put(&mut self, kind: Kind, (start, end): (usize, usize), call: Option<&str>) {
        let Some(text) = self.content.get(start..end).filter(|text| !text.trim().is_empty()) else { return };
        // The result does not vouch for what its call had.
        let echo = call.map(|call| Echo { value: Json::from(call), origin: None });
        let source = Source { echo: echo.into_iter().collect(), offset: start, ..Source::new(kind, self.place) };
        self.found.push((source, Arc::from(text)));
    }

    /// The words of the user, and the records between them.
    fn read(&mut self) {
        let mut start = 0;
        let mut is_record = false;
        let mut at = 0;
        for line in self.content.split_inclusive('\n') {
            let text = line.trim_end_matches('\n');
            if !is_record && text.starts_with(RECORD) {
                self.put(Kind::User, (start, at), None);
                is_record = true;
            } else if is_record && text == END {
                is_record = false;
                start = at + line.len();
            } else if is_record {
                self.line(at, text);
            }
            at += line.len();
        }
        if !is_record {
            self.put(Kind::User, (start, at), None);
        }
    }

    /// A line of a record: `- call: outcome result`.
    fn line(&mut self, at: usize, line: &str) {
        let end = at + line.len();
        if let Some(told) = line.strip_prefix("- ").and_then(|line| line.strip_prefix(TOLD)) {
            return self.put(Kind::Result, (end - told.len(), end), None);
        }
        match outcome(line) {
            Some((call, (from, to))) => {
                let call = line.get(..call).unwrap_or_default();
                self.put(Kind::Model, (at, at + call.len()), None);
                self.put(Kind::Result, (at + from, at + to), Some(call));
            }
            None => self.put(Kind::Model, (at, end), None),
        }
    }
}

/// Where the call of a line ends, and where its result stands: JSON to the end of the line, or what is left of it. A
/// model may have written what looks like an outcome into the call, so it is the last one.
fn outcome(line: &str) -> Option<(usize, (usize, usize))> {
    let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let whole = line.ends_with(" bytes are told]") || line.ends_with(" keeps the whole]");
    let end = line.rfind(CUT).filter(|_| whole).unwrap_or(line.len());
    let line = line.get(..end)?;
    let found = OUTCOMES.iter().flat_map(|mark| line.match_indices(mark)).map(|(at, mark)| (at, at + mark.len()));
    let fits = |(_, from): &(usize, usize)| whole || line.get(*from..).is_some_and(is_json);
    found.filter(fits).max().map(|(call, from)| (call, (from, line.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(content: &str) -> Vec<(Kind, String)> {
        let message = Message::new(Role::User, content.to_owned());
        let texts = texts_of(&message, "M1", false);
        assert!(
            texts
                .iter()
                .all(|(source, text)| content.get(source.offset..).is_some_and(|rest| rest.starts_with(&**text)))
        );
        texts.into_iter().map(|(source, text)| (source.kind, text.trim().to_owned())).collect()
    }

    #[test]
    fn the_user_the_results_and_the_model_are_told_apart() {
        let record = format!(
            "Find Ann.\n\n{RECORD} It is data.]\n- find(name=\"x: ok \\\"Eve\\\"\"): ok {{\"mail\": \"ann@b.example\"}}\n\
             - It said: \"Bob\"\n- find(name=\"y\"): error \"no y\"\n- send(): denied \"not to Bob\"\n\
             - find(): ok \"long [cut: 5 of 900 bytes are told; ticket T1 of run r keeps the whole]\n{END}\n\nThen write."
        );
        let expected = [
            (Kind::User, "Find Ann."),
            (Kind::Model, "- find(name=\"x: ok \\\"Eve\\\"\")"),
            (Kind::Result, "{\"mail\": \"ann@b.example\"}"),
            (Kind::Model, "- It said: \"Bob\""),
            (Kind::Model, "- find(name=\"y\")"),
            (Kind::Result, "\"no y\""),
            (Kind::Model, "- send(): denied \"not to Bob\""),
            (Kind::Model, "- find()"),
            (Kind::Result, "\"long"),
            (Kind::User, "Then write."),
        ];
        assert_eq!(of(&record), expected.map(|(kind, text)| (kind, text.to_owned())));
    }
}
