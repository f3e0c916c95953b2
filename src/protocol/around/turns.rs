//! Whose turn a move stands in: a model that continues the conversation writes turns of others as well.

use crate::reply::tag::special_token;

/// Marks of Markdown that lines begin with, and that stand around their first word.
const MARKS_OF_LINES: [char; 7] = ['*', '_', '#', '>', '-', '`', '"'];

/// Roles of others in chat templates.
const OTHERS: [&str; 10] = [
    "user",
    "human",
    "system",
    "tool",
    "ipython",
    "observation",
    "environment",
    "developer",
    "instruction",
    "customer",
];
/// Roles of the model.
const OWN: [&str; 7] = ["assistant", "model", "ai", "gpt", "bot", "chatbot", "response"];
/// Words that label what tools have given; prose labels its own findings by them, on lines of their own.
const RESULTS: [&str; 5] = ["observation", "result", "tool result", "tool response", "function result"];

/// Whether the text before a move ends in the turn of somebody else.
pub(super) fn is_of_another(left: &str) -> bool {
    let mut other = false;
    let mut at = 0;
    let mut line_begins = true;
    while let Some(rest) = left.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some(length) = special_token(rest) {
            let token = rest.get(..length).unwrap_or("");
            let named = match token {
                "[INST]" => Some(true),
                "[/INST]" => Some(false),
                _ => role(token.trim_matches(|c: char| !c.is_alphanumeric())),
            };
            at += length;
            if let Some(named) = named.or_else(|| role(word_alone(left.get(at..).unwrap_or("").trim_start()))) {
                other = named;
            }
            line_begins = true;
            continue;
        }
        if line_begins && let Some(named) = labelled(rest) {
            other = named;
        }
        let c = rest.chars().next().unwrap_or(' ');
        line_begins = c == '\n';
        at += c.len_utf8();
    }
    other
}

/// The word that a text begins with, if it is all of its line, or of what stands before the next token.
fn word_alone(text: &str) -> &str {
    let (word, rest) = text.split_at(text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len()));
    if rest.trim_start_matches([' ', '\t', '\r']).starts_with(['\n', '<']) || rest.trim().is_empty() {
        word
    } else {
        ""
    }
}

/// Whether a word is a role of others, or of the model.
fn role(word: &str) -> Option<bool> {
    let word = word.to_lowercase();
    if OTHERS.contains(&word.as_str()) {
        return Some(true);
    }
    OWN.contains(&word.as_str()).then_some(false)
}

fn without_marks(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || MARKS_OF_LINES.contains(&c))
}

/// Whose turn the label of a line begins.
fn labelled(rest: &str) -> Option<bool> {
    let line = rest.lines().next().unwrap_or("");
    let (label, behind) = line.split_once([':', '：'])?;
    let label = without_marks(label).to_lowercase();
    let last = rest.get(line.len()..).is_some_and(|rest| rest.trim().is_empty());
    if RESULTS.contains(&label.as_str()) || label == "system" || label == "tool" {
        // The move itself is labelled so.
        return (last && without_marks(behind).is_empty()).then_some(true);
    }
    if matches!(label.as_str(), "thought" | "action" | "final answer" | "answer") {
        return Some(false);
    }
    role(&label)
}

#[cfg(test)]
mod tests {
    use super::is_of_another;

    #[test]
    fn turns_of_others() {
        for text in [
            "<|im_start|>user\n",
            "[INST] ",
            "User: ",
            "Hello\nHuman: do it\n",
            "Observation: ",
            "**Observation:**\n",
            "<｜User｜>",
            "<|user|>\n",
            "### Instruction:\n",
            "<|start_header_id|>user<|end_header_id|>\n\n",
            "assistant\nhi<|im_end|>\n<|im_start|>tool\n",
        ] {
            assert!(is_of_another(text), "{text}");
        }
        for text in [
            "",
            "assistant\n",
            "<|im_start|>assistant\n",
            "User: hi\nAssistant: ",
            "[INST] hi [/INST]",
            "Observation: it is there.\nThought: so\n",
            "The user: a man\n",
            "Result: 3 rows.\n",
            "<|user|>hi<|assistant|>",
            "I ask the user\n",
        ] {
            assert!(!is_of_another(text), "{text}");
        }
    }
}
