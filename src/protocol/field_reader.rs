//! The fields of a protocol object: there or missing, of the right type, known or not.

use super::repair_notes::RepairNotes;
use super::retraction::{Beside, retracts};
use super::unknown_keys::{self, Carries};
use crate::reply::json::{Field, Record};
use crate::reply::{BoxedViolation, Code, RepairCode, Span, Value, Violation};

/// The fields that one move of a protocol has.
pub(crate) struct Form {
    /// What the move is called in messages: "a tool call".
    pub(crate) name: &'static str,
    /// The keys it has.
    pub(crate) keys: &'static [&'static str],
    /// The keys whose `null` is a value.
    pub(crate) nullable: &'static [&'static str],
    /// The keys of all the protocol's moves.
    pub(crate) protocol: &'static [&'static str],
    /// Where arguments belong: "inside 'args'". Empty for a move that has none.
    pub(crate) arguments: &'static str,
    /// It does something: no key beside it may say when, how or whether.
    pub(crate) effect: bool,
    /// The smallest correct form.
    pub(crate) expected: &'static str,
}

/// Reads the fields of one record as one form.
pub(crate) struct FieldReader<'a> {
    pub(crate) record: &'a Record,
    pub(crate) form: &'a Form,
    /// What JSON pointers begin with: the place of the record in the payload.
    pub(crate) at: String,
    pub(crate) notes: &'a mut RepairNotes,
}

impl<'a> FieldReader<'a> {
    /// The field, if it is there and not `null`.
    pub(crate) fn get(&mut self, key: &str) -> Option<&'a Field> {
        let field = self.record.fields.get(key)?;
        (*field.value != Value::Null || self.form.nullable.contains(&key)).then_some(field)
    }

    /// The field, or the violation that it is missing. An unknown key beside it may be meant for it.
    pub(crate) fn required(&mut self, key: &str) -> Result<&'a Field, BoxedViolation> {
        match self.get(key) {
            Some(field) => Ok(field),
            None => Err(self.missing(key)),
        }
    }

    pub(crate) fn missing(&self, key: &str) -> BoxedViolation {
        let name = self.form.name;
        let unknown: Vec<_> = self.unknown().map(|(other, field)| (other, field.key_span)).collect();
        if let Some((first, place)) = unknown.first() {
            let shown = unknown_keys::listed(unknown.iter().map(|(other, _)| *other));
            let message = format!("expected '{key}' in {name}: got the unknown {shown} and no '{key}'");
            return self.fault(Code::UnknownKey, message, *place, first);
        }
        let message = format!("expected '{key}' in {name}: it is missing");
        self.fault(Code::MissingField, message, self.record.span, key)
    }

    /// The fields that no move of the protocol has, and that say something.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = (&'a str, &'a Field)> {
        let protocol = self.form.protocol;
        self.record
            .fields
            .iter()
            .filter(move |(key, field)| !protocol.contains(key) && !unknown_keys::is_empty(&field.value))
    }

    /// The text of a required string field.
    pub(crate) fn text(&mut self, key: &str) -> Result<(&'a str, Span), BoxedViolation> {
        let field = self.required(key)?;
        match &*field.value {
            Value::String(text) => Ok((text, field.span)),
            other => Err(self.bad_type(key, field, "text in quotes", other)),
        }
    }

    /// The text of a required string field that is a name: blanks around it are dropped.
    pub(crate) fn name(&mut self, key: &str) -> Result<(&'a str, Span), BoxedViolation> {
        let (text, span) = self.text(key)?;
        let name = text.trim();
        if name.len() < text.len() {
            self.notes.note(RepairCode::NameTrimmed, span)?;
        }
        Ok((name, span))
    }

    /// A required id: a string, or the number that spells it.
    pub(crate) fn id(&mut self, key: &str) -> Result<(String, Span), BoxedViolation> {
        let field = self.required(key)?;
        match &*field.value {
            Value::Number(number) if number.is_integer() => {
                self.notes.note(RepairCode::IdStringified, field.span)?;
                Ok((number.as_str().to_owned(), field.span))
            }
            Value::String(_) => self.name(key).map(|(id, span)| (id.to_owned(), span)),
            other => Err(self.bad_type(key, field, "an id in quotes", other)),
        }
    }

    /// Thoughts, which may be missing: text, or a list of texts.
    pub(crate) fn thoughts(&mut self, key: &str) -> Result<Option<String>, BoxedViolation> {
        let Some(field) = self.get(key) else { return Ok(None) };
        if let Value::Array(items) = &*field.value
            && let Some(lines) = items.iter().map(Value::as_str).collect::<Option<Vec<_>>>()
        {
            self.notes.note(RepairCode::ThoughtList, field.span)?;
            return Ok(Some(lines.join("\n")));
        }
        self.text(key).map(|(text, _)| Some(text.to_owned()))
    }

    /// Refuses a move that says of itself that it is not to be made.
    pub(crate) fn meant(&self, key: &str) -> Result<(), BoxedViolation> {
        let Some(field) = self.record.fields.get(key) else { return Ok(()) };
        if !field.value.as_str().is_some_and(|text| retracts(text, Beside::Inside)) {
            return Ok(());
        }
        let message = format!("expected {} that is meant: got one whose '{key}' takes it back", self.form.name);
        let fault = self.fault(Code::QuotedMove, message, field.span, key);
        Err(Box::new(fault.hint("a move takes effect at once: write it when it is meant, or make another one")))
    }

    /// A string field that may be missing.
    pub(crate) fn optional_text(&mut self, key: &str) -> Result<Option<(&'a str, Span)>, BoxedViolation> {
        if self.get(key).is_some() { self.text(key).map(Some) } else { Ok(None) }
    }

    /// Notes fields that are `null`, and drops unknown keys that can't have carried anything for the move: those it gives.
    /// Refuses all others at once. Those in `judged` were settled by the caller.
    pub(crate) fn rest(&mut self, judged: &[&str]) -> Result<Vec<String>, BoxedViolation> {
        if self.record.supplied
            && let Some((_, field)) = self.record.fields.iter().last()
            && self.may_hold_more(&field.value)
        {
            let message =
                format!("expected '}}' before the rest of {}: where it is missing is a guess", self.form.name);
            let fault = Violation::new(Code::UnbalancedBrackets, message)
                .at(Span::at(self.record.span.end))
                .related(field.span, "this may have ended earlier")
                .expected(self.form.expected);
            return Err(Box::new(fault));
        }
        let (mut dropped, mut refused) = (Vec::new(), Vec::new());
        for (key, field) in self.record.fields.iter() {
            if judged.contains(&key) {
                continue;
            }
            let known = self.form.keys.contains(&key);
            if *field.value == Value::Null && !(known && self.form.nullable.contains(&key)) {
                self.notes.note(RepairCode::NullField, field.span)?;
                continue;
            }
            if known {
                continue;
            }
            let whole = Span::new(field.key_span.start, field.span.end);
            if unknown_keys::is_empty(&field.value) || self.repeats(&field.value) {
                self.notes.note(RepairCode::UnknownKeyDropped, whole)?;
                continue;
            }
            let carries = match unknown_keys::carries(key, &field.value, self.form.effect) {
                _ if self.form.protocol.contains(&key) && !unknown_keys::is_remark(key) => Carries::Other,
                carries => carries,
            };
            if carries == Carries::Nothing {
                self.notes.note(RepairCode::UnknownKeyDropped, whole)?;
                dropped.push(key.to_owned());
            } else {
                refused.push((key, field.key_span, carries));
            }
        }
        let Some((first, place, _)) = refused.first() else { return Ok(dropped) };
        let shown = unknown_keys::listed(refused.iter().map(|(key, ..)| *key));
        let message = format!("expected only the keys of {}: got the {shown} as well", self.form.name);
        let fault = self.fault(Code::UnknownKey, message, *place, first);
        let any = |kind: Carries| refused.iter().any(|(.., carries)| *carries == kind);
        Err(if any(Carries::Arguments) && !self.form.arguments.is_empty() {
            Box::new(fault.hint(format!("put every argument {}", self.form.arguments)))
        } else if any(Carries::Condition) {
            Box::new(
                fault.hint("a move takes effect at once and as it is: write it when it is meant, without this key"),
            )
        } else {
            fault
        })
    }

    /// Whether a value says again what a field of the move says.
    fn repeats(&self, value: &Value) -> bool {
        let own = self.form.keys.iter().filter_map(|key| self.record.fields.get(key));
        let meant = unknown_keys::decoded(value);
        own.into_iter().any(|field| *field.value == *value || unknown_keys::decoded(&field.value) == meant)
    }

    /// Whether a value at the end of the record, whose closing bracket is missing, holds what may belong to the record or
    /// beside it: a key that the record lacks, or a whole record.
    fn may_hold_more(&self, value: &Value) -> bool {
        match value {
            Value::Object(object) => {
                object.keys().any(|key| self.form.keys.contains(&key) && !self.record.fields.contains_key(key))
                    || object.values().last().is_some_and(|last| self.may_hold_more(last))
            }
            Value::Array(items) => {
                let record = |item: &Value| {
                    item.as_object()
                        .is_some_and(|object| object.keys().filter(|key| self.form.keys.contains(key)).count() > 1)
                };
                items.iter().any(record) || items.last().is_some_and(|last| self.may_hold_more(last))
            }
            _ => false,
        }
    }

    pub(crate) fn bad_type(&self, key: &str, field: &Field, wanted: &str, found: &Value) -> BoxedViolation {
        let found = found.type_name();
        let article = if matches!(found, "object" | "array" | "integer") { "an" } else { "a" };
        let article = if found == "null" { String::new() } else { format!("{article} ") };
        let message = format!("expected {wanted} in '{key}': got {article}{found}");
        let fault = self.fault(Code::BadType, message, field.span, key);
        Box::new(fault.found(found))
    }

    pub(crate) fn fault(&self, code: Code, message: impl Into<String>, span: Span, key: &str) -> BoxedViolation {
        let key = crate::json_pointer::escape(key);
        Box::new(
            Violation::new(code, message).at(span).pointer(format!("{}/{key}", self.at)).expected(self.form.expected),
        )
    }
}
