//! The text around a move, judged by the tools of the run: names of parameters with a value, and calls in words.

use super::keys;
use crate::protocol::{Move, Protocol, Reply, violations};
use crate::reply::{BoxedViolation, Code, Span, Violation};
use crate::tool::ToolSet;

/// A tool that the move calls.
#[derive(Debug, Clone)]
struct CalledTool<'a> {
    /// Where the call stands.
    place: Span,
    /// The names of its parameters.
    parameters: Vec<&'a str>,
}

/// The reply, or its violation where the text around its calls may be a part of them or another call of these tools.
pub(crate) fn judged(protocol: &dyn Protocol, tools: &ToolSet, reply: Reply) -> Reply {
    let Ok(Move::Call { calls }) = &reply.outcome else { return reply };
    if reply.around.is_empty() {
        return reply;
    }
    let found: Vec<_> = calls.iter().map(|call| (call.span, tools.find(&call.tool, protocol.routes()))).collect();
    let called: Vec<CalledTool<'_>> = found
        .iter()
        .filter_map(|(place, found)| {
            let properties = found.as_ref().ok()?.tool.parameters.get("properties")?.as_object()?;
            Some(CalledTool { place: *place, parameters: properties.keys().map(String::as_str).collect() })
        })
        .collect();
    let names: Vec<&str> = tools.names().collect();
    match judge(&reply.raw, &reply.around, &called, &names, &protocol.call_form()) {
        Ok(()) => reply,
        Err(violation) => reply.refused(*violation),
    }
}

/// Words of the lines that name a tool: "Action: search".
const LABELS: [&str; 9] =
    ["action", "tool", "tool name", "tool_name", "function", "function name", "call", "tool call", "invoke"];
/// Marks of Markdown around a label and its value.
const MARKS: [char; 8] = ['*', '_', '#', '-', '`', '"', '\'', ' '];

/// Refuses the calls where a piece of the text around them holds the name of a parameter with a value, or another call
/// of a tool. `tools` are the names of all the run's tools.
fn judge(
    raw: &str,
    around: &[Span],
    called: &[CalledTool<'_>],
    tools: &[&str],
    form: &str,
) -> Result<(), BoxedViolation> {
    let Some(first) = called.first() else { return Ok(()) };
    let parameters: Vec<&str> = called.iter().flat_map(|tool| &tool.parameters).copied().collect();
    for piece in around {
        if let Some((place, name)) = keys::find(raw, *piece, &[], &parameters) {
            let message = format!("expected every argument inside the call: got '{name}' outside it");
            return Err(Box::new(
                Violation::new(Code::ExtraData, message)
                    .at(place)
                    .related(first.place, "the call")
                    .hint("put every argument into the call, and write no names of arguments around it"),
            ));
        }
        if let Some(second) = in_words(raw, *piece, tools) {
            return Err(violations::several(first.place, second, form));
        }
    }
    Ok(())
}

/// A line that calls a tool in words: its name after a label, or before arguments in brackets.
fn in_words(raw: &str, piece: Span, tools: &[&str]) -> Option<Span> {
    let mut at = piece.start;
    for line in piece.of(raw).split_inclusive('\n') {
        let place = Span::new(at, at + line.trim_end().len());
        at += line.len();
        let said = line.trim().trim_matches(MARKS);
        let labelled = said.split_once([':', '=']).is_some_and(|(label, value)| {
            let label = label.trim_matches(MARKS).to_ascii_lowercase();
            LABELS.contains(&label.as_str()) && tools.contains(&value.trim_matches(MARKS))
        });
        let called = said.split_once('(').is_some_and(|(name, rest)| {
            let arguments = rest.split_once(')').map_or(rest, |(arguments, _)| arguments);
            tools.contains(&name.trim_end()) && !arguments.trim().is_empty()
        });
        if labelled || called {
            return Some(place);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::in_words;
    use crate::reply::Span;

    #[test]
    fn calls_in_words() {
        let calls = |text: &str| in_words(text, Span::new(0, text.len()), &["search", "drop_table"]).is_some();
        for text in ["Action: search", "so\n**Tool:** `drop_table`", "search(\"x\")", "- drop_table(1) now"] {
            assert!(calls(text), "{text}");
        }
        for text in ["Action: searching", "I use search() now", "search it", "Action: none", "the tool: a search"] {
            assert!(!calls(text), "{text}");
        }
    }
}
