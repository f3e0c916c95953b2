//! Text outside of JSON: answers, narration and thoughts, in which nothing may stand that is read as something else.

use super::chars::CharSet;
use super::excluded_text::{Part, Without};
use super::rules::{Node, Rules};

/// Names of tags around reasoning, and around calls of other protocols, wherever they stand.
const TAGS: [&str; 14] = [
    "think",
    "thought",
    "reasoning",
    "analysis",
    "scratchpad",
    "reflection",
    "tool_call",
    "tool_use",
    "toolcall",
    "function_call",
    "functioncall",
    "invoke",
    "function=",
    "parameter=",
];
/// Names of tags that hold a call where a bracket or a tag follows.
const HOLDERS: [&str; 7] = ["tool", "tools", "function", "action", "output", "call", "calls"];
/// Other beginnings of calls.
const OPENINGS: [&str; 4] = ["[TOOL_CALLS]", "[TOOL_REQUEST]", "<｜", "antml:"];
/// Control tokens, which are taken off the end of a reply.
const TOKENS: [&str; 13] = [
    "</s>",
    "<s>",
    "<eos>",
    "<bos>",
    "<end_of_turn>",
    "<start_of_turn>",
    "<eot>",
    "[eos]",
    "[/inst]",
    "[inst]",
    "<pad>",
    "<end_of_utterance>",
    "[done]",
];
/// Keys that only calls have.
const CALL_KEYS: [&str; 2] = ["call_id", "tool_name"];
/// Keys that, in a reply that is one JSON value, show that it is a call.
const ARGUMENTS: [&str; 6] = ["arguments", "parameters", "args", "input", "action_input", "payload"];

/// What text is made of.
pub(in crate::protocol) fn characters() -> CharSet {
    CharSet::controls().minus(&CharSet::of("\t\n\r")).complement()
}

/// The tag `literal` in every form that the reader takes for it.
fn tag(literal: &str) -> Part {
    let angled = literal.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    match angled {
        Some(inside) => {
            let name = inside.trim_start_matches('/');
            let part = Part::new().text("<").blanks();
            let part = if name.len() < inside.len() { part.text("/").blanks() } else { part };
            part.text(name).blanks().text(">")
        }
        None => Part::new().exactly(literal),
    }
}

/// Tags and other marks that are read as something else than text, wherever they stand.
fn marks(own: &[&str]) -> Vec<Part> {
    let names = CharSet::ranges([('0', '9'), ('A', 'Z'), ('a', 'z')]);
    let mut parts: Vec<Part> = own.iter().map(|literal| tag(literal)).collect();
    for name in TAGS {
        parts.push(Part::new().text("<").text(name));
        parts.push(Part::new().text("</").text(name));
    }
    for name in HOLDERS {
        parts.push(Part::new().text("<").text(name).text(">").blanks().one(CharSet::of("[{<")));
    }
    parts.extend(OPENINGS.map(|opening| Part::new().text(opening)));
    parts.push(Part::new().text("<|").one(names));
    parts
}

/// Any text, with `end` behind it, which does not stand in it before: the tags of `own` names don't.
pub(in crate::protocol) fn text_before(rules: &mut Rules, hint: &str, own: &[&str], end: &str) -> Node {
    let tags: Vec<String> = own.iter().flat_map(|name| [format!("<{name}>"), format!("</{name}>")]).collect();
    let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
    let text = Without { of: characters(), never: marks(&tags), last: Vec::new() }.node(rules, hint);
    rules.word(hint, Node::sequence([text, Node::literal(end)]))
}

/// A bracket or comma, and one of the keys behind it, up to its closing quote.
fn keyed(part: Part, key: &str) -> Part {
    part.one(CharSet::of("[{,")).blanks().text("\"").text(key).text("\"")
}

/// An answer in plain text: no call and no block, in whatever form.
pub(in crate::protocol) fn answer(rules: &mut Rules, start: &str, end: &str) -> Node {
    let mut never = marks(&[start, end]);
    never.extend(calls_in_text());
    let mut last: Vec<Part> = TOKENS.iter().map(|token| Part::new().text(token).blanks()).collect();
    for tag in [start, end] {
        let most: String = tag.chars().take(tag.chars().count().saturating_sub(1)).collect();
        if most.is_empty() {
            continue;
        }
        let most = if tag.starts_with('<') { Part::new().text(&most) } else { Part::new().exactly(&most) };
        last.push(most.blanks());
    }
    // An answer is something.
    never.push(Part::at_start().one(CharSet::blanks()));
    last.push(Part::at_start());
    let text = Without { of: characters(), never, last }.node(rules, "answer");
    rules.word("answer", text)
}

/// What shows that text has turned into a call without tags.
fn calls_in_text() -> Vec<Part> {
    let mut parts: Vec<Part> = CALL_KEYS.iter().map(|key| keyed(Part::new(), key)).collect();
    // A reply that is one JSON value, or a fence around one.
    let rest = || characters();
    for key in ARGUMENTS {
        let json = Part::at_start().blanks().one(CharSet::of("[{")).some(rest());
        parts.push(json.one(CharSet::of("{,")).blanks().text("\"").text(key).text("\""));
        let fence = Part::at_start().blanks().one(CharSet::of("`~")).some(CharSet::of("`~"));
        let words = fence.some(CharSet::ranges([('0', '9'), ('A', 'Z'), ('a', 'z')])).blanks();
        let json = words.one(CharSet::of("[{")).some(rest());
        parts.push(json.one(CharSet::of("{,")).blanks().text("\"").text(key).text("\""));
    }
    parts
}

/// A mark of each tag that does not begin as other tags do: where none of them stands, there is no tag. It is not the
/// first one where that may be the bracket before a key.
fn own_marks(tags: (&str, &str)) -> CharSet {
    let own = [tags.0, tags.1].into_iter().filter(|tag| !tag.starts_with('<'));
    let mark = |tag: &str| {
        let rest = tag.strip_prefix(['[', '{']).unwrap_or(tag);
        rest.chars().find(|mark| !mark.is_alphanumeric() && !mark.is_whitespace()).or_else(|| rest.chars().next())
    };
    CharSet::of(&own.filter_map(mark).collect::<String>())
}

/// Text that a block follows: narration, or what has turned into a call without tags. `block` is how a block begins.
pub(in crate::protocol) fn before_block(rules: &mut Rules, tags: (&str, &str), block: &str) -> Vec<Node> {
    const FENCES: [&str; 2] = ["```", "~~~"];
    let mut never = marks(&[tags.0, tags.1]);
    never.extend(calls_in_text());
    never.push(Part::at_start().one(CharSet::blanks()));
    // In a fence, a block would be part of an answer: one that is opened is closed.
    never.extend(FENCES.map(|mark| Part::new().exactly(mark)));
    let text = Without { of: characters(), never, last: Vec::new() }.node(rules, "narration");
    let plain = characters().minus(&CharSet::of("<`~")).minus(&own_marks(tags));
    let plain = Node::any_number(Node::Class(plain));
    let blanks = || Node::any_number(Node::Class(CharSet::of(" \t\r\n")));
    let line_end = || Node::literal("\n");
    let info = Node::any_number(Node::Class(CharSet::ranges([('0', '9'), ('A', 'Z'), ('a', 'z')])));
    let fence = |mark: &str| {
        let inside = Node::sequence([line_end(), blanks(), text.clone()]);
        Node::sequence([Node::literal(mark), info.clone(), inside, Node::literal(format!("\n{mark}"))])
    };
    let fence = rules.rule("fence", Node::Choice(FENCES.map(fence).to_vec()));
    let after = Node::optional(Node::sequence([line_end(), blanks(), text.clone()]));
    let more = Node::any_number(Node::sequence([line_end(), fence.clone(), after.clone()]));
    let first = Node::choice([text.clone(), Node::sequence([fence, after])]).unwrap_or_else(Node::empty);
    let before = Node::sequence([first, more]);
    let narration = rules.word("narration", Node::sequence([before, Node::literal(format!("\n{block}"))]));
    let keys = |keys: &[&str]| {
        let keys = keys.iter().map(|key| Node::literal(format!("\"{key}\"")));
        Node::Choice(keys.collect())
    };
    let bracket = |marks: &str| Node::sequence([Node::Class(CharSet::of(marks)), blanks()]);
    let all: Vec<&str> = CALL_KEYS.iter().chain(&ARGUMENTS).copied().collect();
    // The first is what a call in prose looks like, the second what a reply that is one value does.
    let prose = Node::sequence([text.clone(), bracket("[{,"), keys(&CALL_KEYS)]);
    let value = || {
        let inside = [Node::Class(CharSet::of("[{")), plain.clone(), bracket("{,"), keys(&all)];
        Node::choice([Node::sequence([bracket("{"), keys(&all)]), Node::sequence(inside)]).unwrap_or_else(Node::empty)
    };
    let fenced = |mark: &str| {
        let before = Node::optional(Node::sequence([text.clone(), line_end()]));
        let line = Node::sequence([info.clone(), blanks(), line_end(), blanks()]);
        Node::sequence([before, Node::literal(mark), line, value(), Node::literal(format!("\n{mark}\n{block}"))])
    };
    let turned = Node::choice([prose, value()]).unwrap_or_else(Node::empty);
    let turned = Node::sequence([turned, Node::literal(format!("\n{block}"))]);
    let fenced = Node::Choice(FENCES.map(fenced).to_vec());
    vec![narration, rules.word("turned", turned), rules.word("fenced", fenced)]
}
