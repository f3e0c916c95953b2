//! The JSON machine: JSON is not touched, what needed no repair is JSON, chunks don't matter.

use super::{Input, lies_inside, small_limits};
use callslip::reply::buffer::Buffer;
use callslip::reply::json::{Complete, JsonReader, OpenPart, Progress, Record, Settings};
use callslip::reply::tag::Tag;
use callslip::reply::{Code, ReadLimits, Repair, RepairPolicy, Span, Value, Violation};
use serde_json::Value as Json;
use serde_json::value::RawValue;

/// A value that was read, and the places that say where.
#[derive(Debug, PartialEq)]
struct Good {
    value: Value,
    records: Vec<Record>,
    repairs: Vec<Repair>,
    span: Span,
    position: usize,
}

pub(super) fn check(input: Input<'_>) {
    let text = String::from_utf8_lossy(input.text);
    let mut settings = Settings::new(RepairPolicy::Default, ReadLimits::default());
    settings.records = input.option(0);
    settings.keys = &["action", "args"];
    if input.option(1) {
        settings.ends = vec![Tag::new("</output>")].into();
    }
    settings.fenced = input.option(2);
    if input.option(3) {
        settings.limits = small_limits();
    }
    let whole = read(&settings, &[text.as_bytes()]);
    for chunks in input.chunkings() {
        assert_eq!(read(&settings, &chunks), whole, "in chunks, and whole");
    }
    match &whole {
        Ok(good) => holds(good, &text),
        Err(violation) => {
            violation.span.into_iter().for_each(|span| lies_inside(span, &text));
            violation.related.iter().for_each(|related| lies_inside(related.span, &text));
        }
    }
    settings.policy = RepairPolicy::Strict;
    let strict = read(&settings, &[text.as_bytes()]);
    match whole {
        Ok(good) if good.repairs.is_empty() => assert_eq!(strict, Ok(good)),
        _ => assert!(strict.is_err(), "strictly {strict:?}"),
    }
    if let Ok(json) = serde_json::from_str(&text) {
        clean(&text, &json, &[&input.chunkings()[0]]);
    }
}

/// JSON is read as it is, with nothing repaired.
pub(crate) fn clean(text: &str, json: &Json, chunkings: &[&[&[u8]]]) {
    let same = |value: &Value| assert_eq!(serde_json::from_str::<Json>(&value.to_json()).expect("JSON"), *json);
    let plain: Value = serde_json::from_str(text).expect("the same text");
    same(&plain);
    for chunks in chunkings {
        let mut settings = Settings::new(RepairPolicy::Default, ReadLimits::default());
        settings.fenced = true;
        match read(&settings, chunks) {
            Ok(good) if good.repairs.is_empty() => {
                assert_eq!(good.value, plain);
                assert!(text[good.span.end..].trim().is_empty(), "{:?} of {text:?}", good.span);
                assert!(!twice(text, json));
            }
            Ok(good) => {
                let codes: Vec<_> = good.repairs.iter().map(|repair| repair.code.name()).collect();
                assert!(codes.iter().all(|code| *code == "duplicate_key_dropped"), "{codes:?} in {text:?}");
                assert!(twice(text, json));
                same(&good.value);
            }
            Err(fault) if fault.code == Code::DuplicateKey => assert!(twice(text, json)),
            // A run of digits this long is refused, whatever it stands for.
            Err(fault) => {
                let digits = |run: &str| run.bytes().filter(u8::is_ascii_digit).count();
                let longest = text.split([',', ':', '[', ']', '{', '}', ' ', '\n', '\t', '\r']).map(digits).max();
                assert!(longest > Some(ReadLimits::default().digits), "{fault:?} in {text:?}");
                assert_eq!(fault.code, Code::NumberTooLarge);
            }
        }
    }
}

/// Whether a key of the JSON stands twice in one object: then its text has more colons than the value has members.
fn twice(text: &str, json: &Json) -> bool {
    let (mut colons, mut quoted, mut escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            b':' if !quoted => colons += 1,
            _ => {}
        }
    }
    // Members of a dropped duplicate are missing as well.
    colons > members(json)
}

fn members(json: &Json) -> usize {
    match json {
        Json::Object(object) => object.values().map(|value| 1 + members(value)).sum(),
        Json::Array(items) => items.iter().map(members).sum(),
        _ => 0,
    }
}

/// Reads the first value of a text in chunks.
fn read(settings: &Settings, chunks: &[&[u8]]) -> Result<Good, Violation> {
    let mut machine = JsonReader::new(settings.clone(), 0);
    let mut buffer = Buffer::default();
    let mut progress = Progress::More;
    let (mut seen, mut shown) = (None, None);
    for chunk in chunks {
        buffer.push(chunk);
        progress = machine.run(buffer.text(), false);
        if progress != Progress::More {
            break;
        }
        seen = grown(&machine, buffer.text(), seen.take());
        if !settings.records
            && let Some(now) = open_value(&machine, buffer.text())
        {
            // Of two braces in a row nothing is there once the inner ones are closed.
            let less = shown.as_ref().is_some_and(|shown| begins(&now, shown));
            assert!(less || shown.as_ref().is_none_or(|shown| begins(shown, &now)), "{shown:?}, then {now:?}");
            shown = if less { shown } else { Some(now) };
        }
    }
    if progress == Progress::More {
        buffer.close();
        progress = machine.run(buffer.text(), true);
    }
    if progress == Progress::Failed {
        return Err(*machine.into_fault().expect("what is wrong"));
    }
    assert_eq!(progress, Progress::Done);
    let (span, position) = (machine.span(), machine.position());
    lies_inside(Span::new(span.end, machine.proven_at()), buffer.text());
    let records = machine.records().to_vec();
    if let Some(Seen { index, key, text }) = seen
        && let Some(field) = records.get(index).and_then(|record| record.fields.get(key.as_str()))
    {
        let (value, literal) = (field.value.as_str().unwrap_or(""), field.span.of(buffer.text()));
        assert!(value.starts_with(&text) || literal.starts_with(&text), "{text:?}, then {field:?}");
    }
    let (value, repairs) = machine.into_value();
    assert!(shown.is_none_or(|shown| begins(&shown, &value)), "{value:?}");
    Ok(Good { value, records, repairs, span, position })
}

/// The part of an open member that was seen.
struct Seen {
    index: usize,
    key: String,
    text: String,
}

/// What is seen of an open member only grows.
fn grown(machine: &JsonReader, text: &str, before: Option<Seen>) -> Option<Seen> {
    let (index, fields) = (machine.records().len(), machine.open_record()?);
    let Some(open) = machine.open_field(text) else { return before };
    if fields.contains_key(open.key) {
        return before;
    }
    let now = match open.part {
        OpenPart::Text(decoded, plain) => format!("{decoded}{plain}"),
        OpenPart::Json(json) => json.to_owned(),
        OpenPart::Nothing => return before,
    };
    if let Some(before) = before.filter(|before| before.index == index && before.key == open.key) {
        assert!(now.starts_with(&before.text), "{:?}, then {now:?} of {:?} in {text:?}", before.text, open.key);
    }
    Some(Seen { index, key: open.key.to_owned(), text: now })
}

/// What is there of a value that is open, as a value.
fn open_value(machine: &JsonReader, text: &str) -> Option<Value> {
    let levels: Vec<_> = machine.open_containers().collect();
    let text = machine.open_text(text).map(|(decoded, plain)| Value::from(format!("{decoded}{plain}").as_str()));
    levels
        .into_iter()
        .rev()
        .fold((None, text), |(_, inner), level| {
            let inner = inner.filter(|_| !level.again);
            let value = match level.members {
                Complete::Items(items) => Value::Array(items.iter().cloned().chain(inner).collect()),
                Complete::Members(object) => {
                    let complete = object.iter().map(|(key, value)| (key.to_owned(), value.clone()));
                    Value::Object(complete.chain(level.key.map(str::to_owned).zip(inner)).collect())
                }
            };
            (Some(value.clone()), Some(value))
        })
        .0
}

/// Whether the first value may grow to the second: strings by their ends, arrays and objects by their last members.
fn begins(first: &Value, second: &Value) -> bool {
    match (first, second) {
        (Value::String(first), Value::String(second)) => second.starts_with(first.as_str()),
        (Value::Array(first), Value::Array(second)) => {
            first.len() <= second.len() && first.iter().zip(second.iter()).all(|(a, b)| begins(a, b))
        }
        (Value::Object(first), Value::Object(second)) => {
            first.len() <= second.len() && first.iter().zip(second.iter()).all(|(a, b)| a.0 == b.0 && begins(a.1, b.1))
        }
        _ => first == second,
    }
}

/// What is true of every value that was read.
fn holds(good: &Good, text: &str) {
    lies_inside(good.span, text);
    good.repairs.iter().for_each(|repair| lies_inside(repair.span, text));
    let json = good.value.to_json();
    assert_eq!(serde_json::from_str::<Value>(&json).expect(&json), good.value);
    let clean = good.repairs.is_empty();
    if clean {
        let raw = serde_json::from_str::<&RawValue>(good.span.of(text));
        assert!(raw.is_ok(), "{:?} of {text:?} is no JSON", good.span.of(text));
    }
    let says = |span: Span, value: &Value| {
        lies_inside(span, text);
        if clean {
            assert_eq!(serde_json::from_str::<Value>(span.of(text)).expect("JSON"), *value);
        }
    };
    if good.records.is_empty() && clean && good.value != Value::Null {
        says(good.span, &good.value);
    }
    for record in &good.records {
        let object = record.fields.iter().map(|(key, field)| (key, Value::clone(&field.value))).collect();
        says(record.span, &Value::Object(object));
        for (key, field) in record.fields.iter() {
            says(field.key_span, &Value::from(key));
            says(field.span, &field.value);
        }
    }
}
