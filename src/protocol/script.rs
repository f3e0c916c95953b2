//! The protocol of scripts: an interpreter writes the replies, and no model ever sees one. It is in no list of protocols.
//!
//! A reply is one line of JSON: `{"calls": [{"tool": …, "arguments": {…}, "line": 3}]}` for the calls that the script has
//! come to, none of them if it waits for earlier ones, or `{"end": {…}}`. Either may have `printed`, the output since the
//! last reply. There are no repairs: any other line is a fault of the interpreter.

use super::example::{ExampleCall, Step};
use super::grammar::{Grammar, Scope};
use super::message_entry::{MessageEntry, Outcomes};
use super::{
    Correction, Decoder, Delta, FinishReason, Move, NamedProtocol, Protocol, ProtocolOptions, ReadOptions, Reply,
    Status, TemplateError, TextSpans, ToolCall, Violation,
};
use crate::codes::Code;
use crate::reply::buffer::Buffer;
use crate::reply::{Span, Value};
use crate::tool::{Budget, Layout, ToolSet};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

const FORM: &str = r#"{"calls": [{"tool": "name", "arguments": {}, "line": 1}]} or {"end": {}}"#;

/// The protocol with its options.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Script {
    /// The name and version of the interpreter. Another version may continue a run: its replies are compared.
    pub engine: String,
    /// The options that all protocols have. They have no effect here.
    #[serde(skip)]
    pub options: ProtocolOptions,
}

impl NamedProtocol for Script {
    const NAME: &'static str = "script";
    const TEMPLATE: &'static str = "";

    fn with_own_options(own: Json) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Own {
            engine: String,
        }
        let Own { engine } = Own::deserialize(own)?;
        Ok(Self { engine, ..Self::default() })
    }
}

impl Protocol for Script {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn options(&self) -> &ProtocolOptions {
        &self.options
    }

    fn with_options(&self, options: ProtocolOptions) -> Arc<dyn Protocol> {
        Arc::new(Self { options, ..self.clone() })
    }

    fn runs_code(&self) -> bool {
        true
    }

    fn answer_name(&self) -> &'static str {
        "end"
    }

    fn interface(&self, _tools: &ToolSet) -> (Layout, Budget) {
        (Layout::Json, Budget(usize::MAX))
    }

    fn system_prompt(&self, _tools: &ToolSet, _delegates: bool, _instructions: &str) -> Result<String, TemplateError> {
        Ok(String::new())
    }

    fn example(&self, _call: &ExampleCall<'_>) -> Vec<Step> {
        Vec::new()
    }

    fn decoder(&self, options: ReadOptions) -> Box<dyn Decoder> {
        Box::new(LineDecoder { buffer: Buffer::default(), bytes: options.limits.bytes })
    }

    fn message(&self, _entries: &[MessageEntry], _outcomes: Outcomes<'_>) -> String {
        String::new()
    }

    fn answer_form(&self) -> Cow<'static, str> {
        FORM.into()
    }

    fn call_form(&self) -> String {
        FORM.to_owned()
    }

    fn correction(&self, _violation: &Violation, _raw: &str) -> Option<Correction> {
        None
    }

    fn examples(&self, _prompt: &str) -> Vec<Span> {
        Vec::new()
    }

    fn own_options(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }

    fn grammar(&self, _scope: &Scope<'_>) -> Grammar {
        Grammar::default()
    }
}

/// Reads one line, once it is whole.
struct LineDecoder {
    buffer: Buffer,
    /// Bytes of a line, at most.
    bytes: usize,
}

impl Decoder for LineDecoder {
    fn push(&mut self, chunk: &[u8], _deltas: &mut Vec<Delta>) -> Status {
        self.buffer.push(chunk);
        if self.buffer.text().len() > self.bytes { Status::Doomed } else { Status::Open }
    }

    fn settled(&self) -> Option<usize> {
        None
    }

    fn finish(mut self: Box<Self>, _reason: FinishReason) -> Reply {
        self.buffer.close();
        let raw = self.buffer.into_text();
        let outcome = if raw.len() > self.bytes {
            let message = format!("expected a line of at most {} bytes: got {}", self.bytes, raw.len());
            Err(Violation::new(Code::TooLarge, message))
        } else {
            read(&raw).map_err(|found| {
                Violation::new(Code::InvalidJson, format!("expected one line of JSON: {found}")).expected(FORM)
            })
        };
        let (repairs, discarded, around) = (Vec::new(), Vec::new(), Vec::new());
        let spans = TextSpans::default();
        Reply { raw, thoughts: None, reasoning: None, narration: None, spans, outcome, repairs, discarded, around }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    calls: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    end: Option<&'a RawValue>,
    #[serde(borrow)]
    printed: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call<'a> {
    #[serde(borrow)]
    tool: &'a RawValue,
    #[serde(borrow)]
    arguments: &'a RawValue,
    line: u32,
}

/// The output of a script since the reply before this one; empty if the reply is not valid.
pub(crate) fn printed(raw: &str) -> String {
    #[derive(Deserialize)]
    struct Printed {
        #[serde(default)]
        printed: String,
    }
    serde_json::from_str(raw).map_or_else(|_| String::new(), |Printed { printed }| printed)
}

/// The move of a line, or the fault in it.
fn read(raw: &str) -> Result<Move, String> {
    if raw.contains('\n') || raw.trim() != raw {
        return Err("got blanks around it or several lines".to_owned());
    }
    let Line { calls, end, printed } = serde_json::from_str(raw).map_err(|cause| cause.to_string())?;
    if printed.is_some_and(|printed| printed.is_empty()) {
        return Err("got 'printed' without output".to_owned());
    }
    match (calls, end) {
        (Some(calls), None) => {
            let calls: Result<Vec<ToolCall>, String> = calls.into_iter().map(|call| read_call(raw, call)).collect();
            Ok(Move::Call { calls: calls? })
        }
        (None, Some(end)) => Ok(Move::Finish { value: Arc::new(object(end)?), success: None, coerced: Vec::new() }),
        _ => Err("got not exactly one of 'calls' and 'end'".to_owned()),
    }
}

fn read_call(raw: &str, written: &RawValue) -> Result<ToolCall, String> {
    let Call { tool, arguments, line } = serde_json::from_str(written.get()).map_err(|cause| cause.to_string())?;
    Ok(ToolCall {
        call_id: None,
        tool: serde_json::from_str(tool.get()).map_err(|cause| cause.to_string())?,
        arguments: Arc::new(object(arguments)?),
        description: Some(format!("line {line}")),
        span: place(raw, written.get()),
        tool_span: place(raw, tool.get()),
        arguments_span: place(raw, arguments.get()),
        unread: Vec::new(),
    })
}

fn object(json: &RawValue) -> Result<Value, String> {
    match serde_json::from_str(json.get()) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("got another value where an object is due".to_owned()),
        Err(cause) => Err(cause.to_string()),
    }
}

/// The place of a part that was read from `raw` without being copied.
fn place(raw: &str, part: &str) -> Span {
    let start = part.as_ptr().addr().saturating_sub(raw.as_ptr().addr());
    Span::new(start, start + part.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_their_places() {
        let raw = r#"{"printed": "é\n", "calls": [{"line": 2, "tool": "f", "arguments": {"a": [1, "}"]}}, {"tool": "g", "arguments": {}, "line": 7}]}"#;
        let Ok(Move::Call { calls }) = read(raw) else { panic!("{:?}", read(raw)) };
        let parts: Vec<_> = calls.iter().map(|call| (call.tool_span.of(raw), call.arguments_span.of(raw))).collect();
        assert_eq!(parts, [(r#""f""#, r#"{"a": [1, "}"]}"#), (r#""g""#, "{}")]);
        assert_eq!(calls[1].description.as_deref(), Some("line 7"));
        assert_eq!(calls[1].span.of(raw), r#"{"tool": "g", "arguments": {}, "line": 7}"#);
    }

    #[test]
    fn nothing_but_the_exact_form_is_read() {
        assert!(matches!(read(r#"{"calls": []}"#), Ok(Move::Call { calls }) if calls.is_empty()));
        assert!(matches!(read(r#"{"end": {"value": null}}"#), Ok(Move::Finish { .. })));
        let call = r#"{"tool": "f", "arguments": {}, "line": 1}"#;
        for raw in [
            String::new(),
            "{}".to_owned(),
            "[]".to_owned(),
            r#"{"calls": null}"#.to_owned(),
            r#"{"end": null}"#.to_owned(),
            r#"{"end": 3}"#.to_owned(),
            r#"{"end": {}, "calls": []}"#.to_owned(),
            r#"{"end": {}, "end": {}}"#.to_owned(),
            r#"{"calls": [], "printed": ""}"#.to_owned(),
            r#"{"calls": [], "more": 1}"#.to_owned(),
            r#" {"calls": []}"#.to_owned(),
            "{\"calls\":\n[]}".to_owned(),
            format!("{{\"calls\": [{call}]}}\n"),
            format!("{{\"calls\": [{call}]}} {{\"calls\": []}}"),
            format!("<tool>{{\"calls\": [{call}]}}</tool>"),
            format!("{{\"calls\": [{call}"),
            format!("{{\"calls\": [{call},]}}"),
            format!("{{\"calls\": {call}}}"),
            r#"{"calls": [{"tool": "f", "arguments": "{}", "line": 1}]}"#.to_owned(),
            r#"{"calls": [{"tool": "f", "arguments": {}, "line": -1}]}"#.to_owned(),
            r#"{"calls": [{"tool": "f", "arguments": {}}]}"#.to_owned(),
            r#"{"calls": [{"tool": 3, "arguments": {}, "line": 1}]}"#.to_owned(),
            r#"{"calls": [{"tool": "f", "arguments": {}, "line": 1, "id": "x"}]}"#.to_owned(),
        ] {
            assert!(read(&raw).is_err(), "{raw}");
        }
    }
}
