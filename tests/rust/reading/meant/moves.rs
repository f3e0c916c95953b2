//! Moves that were meant, and how they are written.

use super::dice::Dice;
use super::outcome::Done;
use callslip::protocol::Move;
use serde_json::{Map, Value as Json, json};
use std::fmt::Write as _;

/// How strings and keys are delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Double,
    Single,
    Bare,
    Curly,
    Backtick,
    Wide,
}

pub(super) const STYLES: [Style; 6] =
    [Style::Double, Style::Single, Style::Bare, Style::Curly, Style::Backtick, Style::Wide];

impl Style {
    /// The quotes of a string.
    pub(super) fn quotes(self) -> [&'static str; 2] {
        match self {
            Self::Double | Self::Bare | Self::Wide => ["\"", "\""],
            Self::Single => ["'", "'"],
            Self::Curly => ["“", "”"],
            Self::Backtick => ["`", "`"],
        }
    }

    pub(super) fn string(self, text: &str) -> String {
        let [open, close] = self.quotes();
        format!("{open}{text}{close}")
    }

    pub(super) fn key(self, text: &str) -> String {
        match self {
            Self::Bare => text.to_owned(),
            // Backticks delimit values alone.
            Self::Backtick => Self::Double.string(text),
            _ => self.string(text),
        }
    }

    pub(super) fn colon(self) -> &'static str {
        if self == Self::Wide { "：" } else { ": " }
    }

    pub(super) fn comma(self) -> &'static str {
        if self == Self::Wide { "，" } else { ", " }
    }

    /// A value, whose texts need no escapes.
    pub(super) fn value(self, value: &Json) -> String {
        match value {
            Json::String(text) => self.string(text),
            Json::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| self.value(item)).collect();
                format!("[{}]", items.join(self.comma()))
            }
            Json::Object(entries) => {
                let members: Vec<String> = entries
                    .iter()
                    .map(|(key, value)| format!("{}{}{}", self.key(key), self.colon(), self.value(value)))
                    .collect();
                format!("{{{}}}", members.join(self.comma()))
            }
            other => other.to_string(),
        }
    }
}

/// Names of the tools that the runs of these tests have.
pub(super) const TOOLS: [&str; 5] = ["write", "copy", "remove", "pay", "backup"];
/// Names of their parameters.
pub(super) const ARGUMENTS: [&str; 6] = ["path", "disk", "amount", "target", "force", "lines"];
const VALUES: [&str; 10] = ["attic", "cellar", "berth", "harbour", "ledger", "lamp", "tide", "oslo", "brest", "b7"];

/// What a reply asks for.
#[derive(Debug, Clone)]
pub(super) struct Meant {
    pub(super) protocol: &'static str,
    /// The tool that is called.
    pub(super) tool: String,
    pub(super) args: Map<String, Json>,
    pub(super) thought: &'static str,
    /// The move if it is no call: its fields, and what it does.
    other: Option<(Json, Done)>,
}

impl Meant {
    pub(super) fn new(protocol: &'static str, tool: &str, args: Map<String, Json>) -> Self {
        let tool = if protocol == "ticket" { format!("POST /{tool}") } else { tool.to_owned() };
        Self { protocol, tool, args, thought: "Go on.", other: None }
    }

    /// A call, or in one of five cases another move.
    pub(super) fn any(protocol: &'static str, dice: &mut Dice) -> Self {
        let mut meant = Self::random(protocol, dice);
        if !dice.one_in(5) {
            return meant;
        }
        let value = value(dice, 1);
        let task = dice.pick(&VALUES);
        meant.other = match (protocol, dice.below(2)) {
            ("react", _) => {
                let fields =
                    json!({"thought": "Go on.", "action": "FINISH", "final_answer": task, "task_successful": true});
                Some((fields, Done::Answer(json!(task))))
            }
            ("ticket", 0) => Some((json!({"type": "RETURN", "value": value}), Done::Answer(value))),
            ("ticket", _) => {
                let done = format!("{:?}", Move::Delegate { task: task.to_owned() });
                Some((json!({"type": "DELEGATE", "task": task}), Done::Other(done)))
            }
            _ => None,
        };
        meant
    }

    /// A random call with one argument or more.
    pub(super) fn random(protocol: &'static str, dice: &mut Dice) -> Self {
        let mut args = Map::new();
        for _ in 0..=dice.below(3) {
            args.insert(dice.pick(&ARGUMENTS).to_owned(), value(dice, 1));
        }
        Self::new(protocol, dice.pick(&TOOLS), args)
    }

    /// Another call than this one.
    pub(super) fn other(&self, dice: &mut Dice) -> Self {
        loop {
            let other = Self::random(self.protocol, dice);
            if other.done() != self.done() {
                return other;
            }
        }
    }

    pub(super) fn done(&self) -> Done {
        if let Some((_, done)) = &self.other {
            return done.clone();
        }
        Done::Calls(vec![(self.tool.clone(), Json::Object(self.args.clone()))])
    }

    /// The keys of a call before the arguments, and the key of the arguments.
    pub(super) fn parts(&self) -> (Map<String, Json>, &'static str) {
        let (before, key) = match self.protocol {
            "react" => (json!({"thought": self.thought, "action": self.tool}), "args"),
            "chatty" => (json!({"call_id": "c1", "tool_name": self.tool}), "arguments"),
            _ => (json!({"type": "CALL", "route": self.tool, "description": self.thought}), "payload"),
        };
        let Json::Object(before) = before else { unreachable!() };
        (before, key)
    }

    /// The object of the move.
    pub(super) fn object(&self) -> Json {
        if let Some((fields, _)) = &self.other {
            return fields.clone();
        }
        let (mut object, key) = self.parts();
        object.insert(key.to_owned(), Json::Object(self.args.clone()));
        Json::Object(object)
    }

    /// The payload: what stands between the tags, or the whole reply in react.
    pub(super) fn payload(&self, style: Style) -> String {
        payload(self.protocol, &style.value(&self.object()))
    }

    /// The whole reply.
    pub(super) fn reply(&self, style: Style) -> String {
        reply(self.protocol, &self.payload(style))
    }
}

/// A random value without a text that needs an escape.
pub(super) fn value(dice: &mut Dice, depth: usize) -> Json {
    match dice.below(if depth == 0 { 4 } else { 6 }) {
        0 | 1 => json!(dice.pick(&VALUES)),
        2 => json!(dice.below(100)),
        3 => json!(dice.one_in(2)),
        4 => Json::Array((0..dice.below(3)).map(|_| value(dice, depth - 1)).collect()),
        _ => {
            let entries = (0..dice.below(3)).map(|_| (dice.pick(&VALUES).to_owned(), value(dice, depth - 1)));
            Json::Object(entries.collect())
        }
    }
}

/// The object of a move as the payload of the protocol.
pub(super) fn payload(protocol: &str, object: &str) -> String {
    if protocol == "chatty" { format!("[{object}]") } else { object.to_owned() }
}

/// A payload between the protocol's tags.
pub(super) fn reply(protocol: &str, payload: &str) -> String {
    let [before, after] = tags(protocol);
    format!("{before}{payload}{after}")
}

/// What stands before and after a payload.
pub(super) fn tags(protocol: &str) -> [&'static str; 2] {
    match protocol {
        "react" => ["", ""],
        "chatty" => ["<tool>\n", "\n</tool>"],
        _ => ["<thoughts>\nGo on.\n</thoughts>\n<output>\n", "\n</output>"],
    }
}

/// The tags alone, without the thoughts.
pub(super) fn bare_tags(protocol: &str) -> [&'static str; 2] {
    match protocol {
        "react" => ["", ""],
        "chatty" => ["<tool>", "</tool>"],
        _ => ["<output>", "</output>"],
    }
}

/// A Python literal of the text in this quote.
pub(super) fn literal(text: &str, quote: char) -> String {
    let mut written = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => written.push_str("\\\\"),
            '\n' => written.push_str("\\n"),
            c if c == quote => {
                let _ = write!(written, "\\{c}");
            }
            c => written.push(c),
        }
    }
    written.push(quote);
    written
}
