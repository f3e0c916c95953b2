//! No struct has many fields, except records: types that are nothing but one stored row, one event or one line.

use crate::floors::rooms;
use std::collections::BTreeMap;

/// Fields of a struct that is no record.
const MOST_FIELDS: usize = 20;

/// Records with more fields, and what each of them is.
const RECORDS: [(&str, &str); 5] = [
    ("run::StoredState", "the stored form of a state: its fields are those of the logs"),
    ("store::Run", "one run of a batch, as the JSON that the statement of PostgreSQL reads"),
    ("store::NewTicket", "one ticket of a batch, as the JSON that the statement of PostgreSQL reads"),
    ("ticket::Ticket", "one ticket as snapshots store it: its fields are those of the logs"),
    ("py::PyTicketRow", "one row of a list of tickets, as Python reads it"),
];

/// The structs of a source with the number of their fields, as rustfmt writes them.
fn structs(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut open: Option<(String, usize, usize)> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let code = line.trim_start().trim_start_matches("pub ");
        let code = code.strip_prefix("pub(").and_then(|rest| rest.split_once(") ")).map_or(code, |(_, rest)| rest);
        match &mut open {
            Some((name, column, fields)) => {
                if indent == *column && code.starts_with('}') {
                    found.push((std::mem::take(name), *fields));
                    open = None;
                } else if indent == *column + 4 && is_field(code) {
                    *fields += 1;
                }
            }
            None => {
                if let Some(rest) = code.strip_prefix("struct ").filter(|rest| rest.ends_with('{')) {
                    let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                    open = Some((name, indent, 0));
                }
            }
        }
    }
    found
}

fn is_field(code: &str) -> bool {
    let rest = code.trim_start_matches("r#");
    let after = rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
    after.len() < rest.len() && after.starts_with(':')
}

#[test]
fn only_records_have_many_fields() {
    let mut many = BTreeMap::new();
    let mut all = 0;
    for (room, _, text) in rooms() {
        for (name, fields) in structs(&text) {
            all += 1;
            if fields > MOST_FIELDS {
                many.insert(format!("{room}::{name}"), fields);
            }
        }
    }
    let records: BTreeMap<&str, &str> = RECORDS.into_iter().collect();
    let found: Vec<&str> = many.keys().map(String::as_str).collect();
    assert_eq!(found, records.into_keys().collect::<Vec<_>>(), "{many:?}");
    assert!(all > 100, "only {all} structs were found");
}

#[test]
fn fields_are_counted() {
    let text = "    pub(super) struct One<'a> {\n        /// a: b\n        #[serde(default)]\n        pub(in crate::run) a: u8,\n        r#type: &'a str,\n    }\nstruct Two;\nstruct Three(u8);\nstruct Four {\n    a: u8,\n}\n";
    assert_eq!(structs(text), [("One".to_owned(), 2), ("Four".to_owned(), 1)]);
}
