//! Calls that stand at the end of an answer in plain text, in whatever form: the model meant a call and named a tool of
//! the run, so the text is no answer. This depends on no table of forms.
//!
//! What counts stands alone on the last lines, or in a fence that ends the reply. In a sentence, in quotes, in a
//! quotation, or with text behind it, it is text like any other.

mod forms;
mod json_call;
mod python_call;
mod tag_call;

use super::surrounding_text::{invented_result, without_tokens};
use super::{Code, Move, Protocol, Reply, Violation};
use crate::reply::Span;
use crate::tool::{ToolSet, ToolSpec};

/// Lines that may belong to the name of a tool above a fence with its arguments.
const HEAD_LINES: usize = 3;
/// How often the text is looked at, at most: what is longer is cut into many lines that begin like a call.
const LOOKS: usize = 24;

/// The reply, or the violation where its answer ends with a call of one of the tools.
pub fn checked(protocol: &dyn Protocol, tools: &ToolSet, reply: Reply) -> Reply {
    let answer = match &reply.outcome {
        // Before an answer in a block of its own, the text is narration.
        Ok(Move::Finish { value, .. }) if protocol.answers_in_text() => reply.narration.as_deref().or(value.as_str()),
        _ => None,
    };
    let tools = &Tools(tools);
    let published =
        |answer: &str| protocol.published_calls(answer).iter().any(|name| tools.names(name)).then(|| answer.to_owned());
    let found = answer
        .and_then(|answer| find(answer, tools).map(|found| found.of(answer).to_owned()).or_else(|| published(answer)));
    let Some(found) = found else { return reply };
    // The answer ends as the reply does, but for blanks, control tokens and reasoning.
    let place = reply.raw.rfind(&found).map(|start| Span::new(start, start + found.len()));
    let message = "expected an answer or a call in the form of this conversation: got a call in another form";
    let violation = Violation::new(Code::UntaggedToolCall, message)
        .expected(protocol.call_form())
        .hint("write the call in the form of this conversation; to only show it, go on with text after it");
    let violation = place.map_or_else(|| violation.clone(), |place| violation.clone().at(place));
    reply.refused(violation)
}

/// The tools that a form may name.
struct Tools<'a>(&'a ToolSet);

impl Tools<'_> {
    /// The tool that is called by this name, perhaps with the namespace that some models write before it.
    fn get(&self, name: &str) -> Option<&ToolSpec> {
        let name = name.trim();
        if name.is_empty() || name.len() > 256 {
            return None;
        }
        let plain = || NAMESPACES.iter().find_map(|space| name.strip_prefix(space));
        self.0.called(name).or_else(|| self.0.called(plain()?))
    }

    fn names(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
}

/// What models write before the names of tools.
pub(super) const NAMESPACES: [&str; 6] = ["functions.", "default_api.", "tools.", "tool.", "api.", "function."];

/// The names of a tool's parameters.
fn is_parameter(tool: &ToolSpec, key: &str) -> bool {
    tool.parameters.get("properties").and_then(|properties| properties.get(key)).is_some()
}

/// Where the call stands that the text ends with.
fn find(text: &str, tools: &Tools<'_>) -> Option<Span> {
    if tools.0.is_empty() {
        return None;
    }
    // A model that goes on with a result of the call has invented it.
    let text = text.get(..invented_result(text).unwrap_or(text.len()))?;
    let kept = without_tokens(text).0?;
    let text = text.get(..kept.end)?;
    let fences = Fences::of(text, kept.start);
    if let Some(last) = &fences.last {
        return last.is_call(text, kept.start, tools).then(|| Span::new(last.start, text.len()));
    }
    let mut budget = LOOKS.saturating_mul(text.len()).saturating_add(4096);
    let mut end = text.len();
    // From the last line up: a call is seldom long, and all that stands before it is text.
    while end > fences.until {
        let start = text.get(fences.until..end)?.rfind('\n').map_or(fences.until, |at| fences.until + at + 1);
        let rest = text.get(start..)?;
        let line = text.get(start..end)?;
        if may_begin(line) {
            budget = budget.checked_sub(rest.len())?;
            if forms::is_call(rest, tools) {
                return Some(Span::new(start, text.len()));
            }
        }
        end = start.saturating_sub(1);
        if start == fences.until {
            break;
        }
    }
    // The marks before a call count as control tokens, too.
    let whole = text.trim_start();
    (kept.start > 0 && fences.until == kept.start && forms::is_call(whole, tools))
        .then(|| Span::new(text.len() - whole.len(), text.len()))
}

/// Whether a line can begin a call: it is not quoted, in a list or deep in code.
fn may_begin(line: &str) -> bool {
    let text = line.trim_start_matches(' ');
    line.len() - text.len() < 4
        && text.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '{' | '[' | '<' | '*' | '#'))
}

/// The fences of a text.
struct Fences<'a> {
    /// Up to here nothing stands alone on the last lines: the last fence that text follows ends there.
    until: usize,
    /// The fence that the text ends with, closed or not.
    last: Option<Fence<'a>>,
}

struct Fence<'a> {
    start: usize,
    word: &'a str,
    content: &'a str,
}

impl<'a> Fences<'a> {
    fn of(text: &'a str, from: usize) -> Self {
        let mut until = from;
        let mut open: Option<(usize, &str, &str, usize)> = None;
        let mut last = None;
        let mut at = from;
        for line in text.get(from..).unwrap_or("").split_inclusive('\n') {
            let (start, end) = (at, at + line.len());
            at = end;
            let marked = line.trim();
            let mark = marked.len() - marked.trim_start_matches(['`', '~']).len();
            let (fence, word) = marked.split_at_checked(mark).unwrap_or(("", marked));
            match open {
                Some((begun, opening, word_of, content))
                    if fence.len() >= opening.len() && word.is_empty() && fence.starts_with(opening) =>
                {
                    let content = text.get(content..start).unwrap_or("");
                    last = Some(Fence { start: begun, word: word_of, content });
                    until = end;
                    open = None;
                }
                None if fence.len() >= 3 && !word.contains('`') && fence.chars().all(|c| fence.starts_with(c)) => {
                    open = Some((start, fence, word.trim(), end));
                }
                _ => {}
            }
        }
        if let Some((start, _, word, content)) = open {
            return Self { until, last: Some(Fence { start, word, content: text.get(content..).unwrap_or("") }) };
        }
        let ends = text.get(until..).unwrap_or("").trim().is_empty();
        Self { until, last: last.filter(|_| ends) }
    }
}

impl Fence<'_> {
    /// Whether the fence holds a call and nothing else, or the arguments of the tool that the line above it names.
    fn is_call(&self, text: &str, from: usize, tools: &Tools<'_>) -> bool {
        let content = self.content.trim();
        if content.is_empty() {
            return false;
        }
        if is_word_of_calls(self.word) && forms::names_a_call(content, tools) || forms::is_call(content, tools) {
            return true;
        }
        if !content.starts_with('{') {
            return false;
        }
        let above = text.get(from..self.start).unwrap_or("").trim_end();
        let mut head = above.len();
        (0..HEAD_LINES).any(|_| {
            let Some(rest) = above.get(..head.saturating_sub(1)) else { return false };
            head = rest.rfind('\n').map_or(0, |at| at + 1);
            above.get(head..).is_some_and(|lines| forms::is_call(&format!("{lines}\n{content}"), tools))
        })
    }
}

/// Whether the word of a fence says that it holds calls: `tool_code`, `tool_call`, `function_call`.
fn is_word_of_calls(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    word.starts_with("tool") || word.starts_with("function_call") || word == "action"
}
