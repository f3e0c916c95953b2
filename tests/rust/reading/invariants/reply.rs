//! Replies: chunks don't matter, deltas only grow, places lie in the text, strictness refuses exactly the repaired.

use super::{Input, Read, Way, lies_inside, small_limits};
use callslip::protocol::{Delta, FinishReason, Move, ProtocolOptions, Reply, Status, TextSpans, feedback};
use callslip::reply::json::{JsonReader, Progress, Settings};
use callslip::reply::span::excerpt;
use callslip::reply::{ReadLimits, RepairCode, RepairPolicy, Value};
use std::collections::BTreeMap;

/// Tags of the chatty protocol: usual, odd, made of words that JSON has, made of control tokens.
const TAGS: [(&str, &str); 4] = [("<tool>", "</tool>"), ("[[GO", "END]]"), ("true", "None"), ("<|tool|>", "<|/tool|>")];

/// All of it, for any bytes.
pub(super) fn check(protocol: &str, input: Input<'_>) {
    let tags = TAGS[usize::from(input.options & 3)];
    let mut way = Way::new(protocol, tags);
    way.options.think_prefilled = input.option(2);
    if input.option(3) {
        way.options.limits = small_limits();
    }
    if input.option(4) {
        way.options.repairs = RepairPolicy::Lenient;
    }
    let whole = chunks_do_not_matter(&way, input.text, &input.chunkings());
    tells_what_is_wrong(&way, &whole.reply);
    values_are_json(&whole.reply);
    status_keeps_its_word(&way, input.text, &whole.reply);
    complete_stands_alone(&way, input.text);
    a_cut_is_no_other_move(&way, input.text, &whole.reply);
    strict_refuses_the_repaired(&mut way, input.text);
}

/// Any chunks are read as the whole is, which is given.
pub(crate) fn chunks_do_not_matter(way: &Way, text: &[u8], chunkings: &[Vec<&[u8]>]) -> Read {
    let whole = way.read(&[text]);
    assert_eq!(whole.reply.raw, String::from_utf8_lossy(text));
    spans_lie_inside(&whole.reply);
    deltas_fit(&whole);
    spans_say_what_was_read(way, &whole);
    for chunks in chunkings {
        let read = way.read(chunks);
        assert_eq!(read.reply, whole.reply, "in chunks, and whole");
        deltas_fit(&read);
        if whole.reply.outcome.is_ok() {
            assert_eq!(told(&read.deltas), told(&whole.deltas), "told of {:?}", whole.reply.raw);
        }
    }
    whole
}

/// What was told, joined by what it is about.
fn told(deltas: &[Delta]) -> BTreeMap<String, String> {
    let mut told = BTreeMap::<String, String>::new();
    for delta in deltas {
        let (key, text) = match delta {
            Delta::Thoughts(text) => ("thoughts".to_owned(), text.as_str()),
            Delta::Reasoning(text) => ("reasoning".to_owned(), text.as_str()),
            Delta::Text(text) => ("text".to_owned(), text.as_str()),
            Delta::Answer(text) => ("answer".to_owned(), text.as_str()),
            Delta::Value(text) => ("value".to_owned(), text.as_str()),
            Delta::CallId { call, id } => (format!("id {call}"), id.as_str()),
            Delta::Tool { call, name, .. } => (format!("tool {call}"), name.as_str()),
            Delta::Arguments { call, text } => (format!("arguments {call}"), text.as_str()),
            Delta::CallReady { call } => (format!("ready {call}"), "!"),
            Delta::TicketId { id, .. } => ("ticket".to_owned(), id.as_str()),
            _ => continue,
        };
        told.entry(key).or_default().push_str(text);
    }
    told
}

/// The deltas of a reply that was read are the beginnings of its final values.
fn deltas_fit(read: &Read) {
    let told = told(&read.deltas);
    let reply = &read.reply;
    let Ok(outcome) = &reply.outcome else { return };
    let fits = |key: &str, value: Option<&str>| {
        let (told, value) = (told.get(key).map_or("", String::as_str), value.unwrap_or(""));
        assert!(value.starts_with(told), "{key}: {told:?} is no beginning of {value:?} in {:?}", reply.raw);
    };
    let is_told = |key: &str| told.contains_key(key);
    // What the chat template had opened as reasoning was told as text, until its end arrived.
    if reply.repairs.iter().any(|repair| repair.code.name() == "implicit_think") {
        return;
    }
    fits("thoughts", reply.thoughts.as_deref());
    fits("reasoning", reply.reasoning.as_deref());
    match outcome {
        Move::Call { calls } => {
            fits("text", reply.narration.as_deref());
            for (index, call) in calls.iter().enumerate() {
                for (key, value) in [("tool", Some(call.tool.as_str())), ("id", call.call_id.as_deref())] {
                    let key = format!("{key} {index}");
                    assert!(!is_told(&key) || told.get(&key).map(String::as_str) == value, "{key} of {:?}", reply.raw);
                }
                says(told.get(&format!("arguments {index}")), &call.arguments);
            }
        }
        Move::Await { ticket_id } | Move::Load { ticket_id, .. } if is_told("ticket") => {
            fits("ticket", Some(ticket_id));
        }
        Move::Finish { value, .. } => {
            let answer = value.as_str();
            fits("text", if is_told("text") { answer } else { None });
            if answer.is_some() {
                fits("answer", if is_told("answer") { answer } else { None });
            }
            says(told.get("value"), value);
        }
        _ => {}
    }
}

/// The text of the spans equals the text of the reply, and begins with the deltas.
fn spans_say_what_was_read(way: &Way, read: &Read) {
    let reply = &read.reply;
    let TextSpans { narration, thoughts, answer } = &reply.spans;
    for spans in [narration, thoughts, answer] {
        for span in spans {
            lies_inside(*span, &reply.raw);
        }
        assert!(spans.iter().all(|span| span.start < span.end), "{spans:?} of {:?}", reply.raw);
        assert!(spans.windows(2).all(|pair| pair[0].end <= pair[1].start), "{spans:?} of {:?}", reply.raw);
    }
    let as_read = ProtocolOptions { read: way.options, ..way.protocol.options().clone() };
    let shown = reply.spans.shown(&*way.protocol.with_options(as_read), &reply.raw);
    let says = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    assert_eq!(shown.thoughts, says(&reply.thoughts), "thoughts of {:?}", reply.raw);
    let Ok(outcome) = &reply.outcome else {
        assert!(answer.is_empty(), "the answer of {:?}", reply.raw);
        return;
    };
    assert_eq!(shown.narration, says(&reply.narration), "narration of {:?}", reply.raw);
    let Move::Finish { value, .. } = outcome else {
        assert!(answer.is_empty(), "the answer of {:?}", reply.raw);
        return;
    };
    if way.protocol.name() == "one_line" {
        return;
    }
    let told = told(&read.deltas);
    let shown = shown.answer.as_deref().unwrap_or("");
    if let Some(text) = value.as_str() {
        assert_eq!(shown, text, "the answer of {:?}", reply.raw);
    } else {
        let told = told.get("value").map_or("", String::as_str);
        assert!(shown.starts_with(told), "{told:?} is no beginning of {shown:?} in {:?}", reply.raw);
    }
}

/// An object that was told as JSON text is the one that was read. A ticket's payload may be text that holds one.
fn says(told: Option<&String>, value: &Value) {
    let Some(text) = told.filter(|text| text.starts_with('{') && value.as_str() != Some(text)) else { return };
    let mut machine = JsonReader::new(Settings::new(RepairPolicy::Default, ReadLimits::default()), 0);
    if machine.run(text, true) == Progress::Done {
        assert_eq!(machine.into_value().0, *value, "told as {text:?}");
    }
}

/// All places lie in the text, between characters.
fn spans_lie_inside(reply: &Reply) {
    let inside = |span| lies_inside(span, &reply.raw);
    reply.repairs.iter().for_each(|repair| inside(repair.span));
    reply.discarded.iter().for_each(|span| inside(*span));
    match &reply.outcome {
        Ok(Move::Call { calls }) => {
            for call in calls {
                inside(call.span);
                inside(call.tool_span);
                inside(call.arguments_span);
            }
        }
        Ok(_) => {}
        Err(violation) => {
            violation.span.into_iter().for_each(inside);
            violation.related.iter().for_each(|related| inside(related.span));
        }
    }
}

/// Feedback on a violation says what is wrong, and every place can be quoted.
fn tells_what_is_wrong(way: &Way, reply: &Reply) {
    if let Err(violation) = &reply.outcome {
        let text = feedback::render(way.protocol.as_ref(), violation, &reply.raw);
        assert!(text.contains(&violation.message), "{text}");
    }
    let places = reply.repairs.iter().map(|repair| repair.span).chain(reply.discarded.iter().copied());
    for place in places.take(20) {
        assert!(excerpt(&reply.raw, place).ends_with('^'));
    }
}

/// What was read can be written as JSON, and is then the same.
fn values_are_json(reply: &Reply) {
    let same = |value: &Value| {
        let json = value.to_json();
        assert_eq!(serde_json::from_str::<Value>(&json).expect(&json), *value);
    };
    match &reply.outcome {
        Ok(Move::Finish { value, .. }) => same(value),
        Ok(Move::Call { calls }) => calls.iter().for_each(|call| same(&call.arguments)),
        _ => {}
    }
}

/// What a decoder says of a reply that is still arriving stays true: doomed is refused in the end, complete stays where
/// it is, and a call that may have been started is one of the reply's.
fn status_keeps_its_word(way: &Way, text: &[u8], whole: &Reply) {
    let mut decoder = way.protocol.decoder(way.options);
    let mut deltas = Vec::new();
    let mut last = Status::Open;
    let mut ready = Vec::new();
    for byte in text.chunks(1) {
        let status = decoder.push(byte, &mut deltas);
        assert!(decoder.calls().starts_with(&ready), "{ready:?}, then {:?}", decoder.calls());
        ready.extend_from_slice(&decoder.calls()[ready.len()..]);
        match (last, status) {
            (Status::Doomed | Status::Complete(_), Status::Doomed) | (Status::Open, _) => {}
            (Status::Complete(before), Status::Complete(after)) => assert_eq!(before, after),
            (before, after) => panic!("{before:?}, then {after:?}, in {:?}", whole.raw),
        }
        last = status;
    }
    if last == Status::Doomed {
        assert!(whole.outcome.is_err(), "doomed, then {:?}", whole.outcome);
    }
    match &whole.outcome {
        Ok(Move::Call { calls }) => assert!(calls.starts_with(&ready), "{ready:?}, then {calls:?}"),
        Ok(other) => assert!(ready.is_empty(), "{ready:?}, then {other:?}"),
        Err(_) => {}
    }
}

/// A stream may be cut where it is complete: what is read then is what the whole comes to, unless that is refused for
/// what follows.
pub(crate) fn complete_stands_alone(way: &Way, text: &[u8]) {
    let mut decoder = way.protocol.decoder(way.options);
    let mut deltas = Vec::new();
    let complete = text.chunks(1).find_map(|byte| match decoder.push(byte, &mut deltas) {
        Status::Complete(at) => Some(at),
        _ => None,
    });
    let Some(complete) = complete else { return };
    let whole = way.read(&[text]).reply;
    let cut = whole.raw.get(..complete).expect("a place between characters");
    let early = way.read(&[cut.as_bytes()]).reply;
    let merged = whole.repairs.iter().any(|repair| repair.code.name() == "merged_blocks");
    if whole.outcome.is_ok() && !merged {
        assert_eq!(early.outcome, whole.outcome, "{cut:?} and {:?}", whole.raw);
    }
    assert!(early.outcome.is_ok() || whole.outcome.is_err(), "{cut:?} {:?}, then {:?}", early.outcome, whole.outcome);
    settled_stands_alone(way, text, &whole);
}

/// Where a stream is settled it may be cut, joined blocks and all.
fn settled_stands_alone(way: &Way, text: &[u8], whole: &Reply) {
    let mut decoder = way.protocol.decoder(way.options);
    let settled = text.chunks(1).find_map(|byte| {
        decoder.push(byte, &mut Vec::new());
        decoder.settled()
    });
    let Some(cut) = settled.and_then(|settled| whole.raw.get(..settled)) else { return };
    let early = way.read(&[cut.as_bytes()]).reply;
    if whole.outcome.is_ok() {
        assert_eq!(early.outcome, whole.outcome, "settled at {cut:?} of {:?}", whole.raw);
    }
}

/// A reply that the token limit cut, or that may be cut, is refused, or says what it says without that limit. One that is
/// not known to be whole is refused where its end was completed, streamed or not.
fn a_cut_is_no_other_move(way: &Way, text: &[u8], whole: &Reply) {
    for reason in [FinishReason::Length, FinishReason::Unknown] {
        let mut decoder = way.protocol.decoder(way.options);
        decoder.push(text, &mut Vec::new());
        let cut = decoder.finish(reason);
        spans_lie_inside(&cut);
        tells_what_is_wrong(way, &cut);
        if cut.outcome.is_ok() {
            assert_eq!(cut.outcome, whole.outcome);
        }
        let mut decoder = way.protocol.decoder(way.options);
        for chunk in text.chunks(3) {
            decoder.push(chunk, &mut Vec::new());
        }
        assert_eq!(decoder.finish(reason).outcome, cut.outcome);
        let completed = |code| matches!(code, RepairCode::ClosedBrackets | RepairCode::MissingCloseTag);
        if reason == FinishReason::Unknown && cut.outcome.is_ok() {
            assert!(!cut.repairs.iter().any(|repair| completed(repair.code)), "{:?}", cut.repairs);
        }
    }
}

/// Where repairs are forbidden, what needs none is read the same, and the rest is refused.
pub(crate) fn strict_refuses_the_repaired(way: &mut Way, text: &[u8]) {
    let whole = way.read(&[text]).reply;
    way.options.repairs = RepairPolicy::Strict;
    let strict = way.read(&[text]).reply;
    if whole.outcome.is_ok() && whole.repairs.is_empty() {
        assert_eq!(strict, whole);
    } else {
        assert!(strict.outcome.is_err(), "{:?} {:?} but strictly {:?}", whole.raw, whole.repairs, strict.outcome);
        spans_lie_inside(&strict);
    }
}
