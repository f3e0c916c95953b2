//! The values inside of a JSON value, with their places.

use crate::json_pointer::escape;
use serde_json::Value;

/// The way from a list or object to a value in it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step<'v> {
    Name(&'v str),
    Position(usize),
}

/// Visits the values of a list or object, each with its JSON pointer, until `visit` is false. `None` for other values.
pub(crate) fn inside<'v>(
    value: &'v Value,
    pointer: &str,
    visit: &mut dyn FnMut(Step<'v>, String, &'v Value) -> bool,
) -> Option<bool> {
    match value {
        Value::Object(fields) => Some(
            fields.iter().all(|(name, value)| visit(Step::Name(name), format!("{pointer}/{}", escape(name)), value)),
        ),
        Value::Array(items) => Some(
            items.iter().enumerate().all(|(at, value)| visit(Step::Position(at), format!("{pointer}/{at}"), value)),
        ),
        _ => None,
    }
}
