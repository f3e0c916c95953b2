//! Whose turn a move stands in: a model that continues the conversation writes turns of others as well.

use crate::reply::doubt::{is_text_of_others, words_of};
use crate::reply::envelope::begins_reasoning;
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
    let mut at = 0;
    let mut line_begins = true;
    // What is left of a channel's header where its tokens are lost.
    let mut other = left.trim_start().lines().next().is_some_and(|line| line.trim() == "analysis");
    while let Some(rest) = left.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some(length) = special_token(rest) {
            let token = rest.get(..length).unwrap_or("");
            let named = match token {
                "[INST]" => Some(true),
                "[/INST]" => Some(false),
                "<|channel|>" => Some(begins_reasoning(left.get(at + length..).unwrap_or("").trim_start())),
                _ => role(token.trim_matches(|c: char| !c.is_alphanumeric())).or_else(|| role_in(token)),
            };
            at += length;
            if let Some(named) = named.or_else(|| role(word_alone(left.get(at..).unwrap_or("").trim_start()))) {
                other = named;
            }
            line_begins = true;
            continue;
        }
        if line_begins && let Some(named) = labelled(rest).or_else(|| headed(rest)).or_else(|| of_a_text(rest)) {
            other = named;
        }
        if let Some(named) = tagged(rest) {
            other = named;
        }
        // The next place where a line or a token may begin.
        let first = rest.chars().next().unwrap_or(' ');
        line_begins = first == '\n';
        at += first.len_utf8();
        if !line_begins {
            let rest = left.get(at..).unwrap_or("");
            at += rest.find(['\n', '<', '[']).unwrap_or(rest.len());
        }
    }
    other
}

/// The word that a text begins with, if it is all of its line, or of what stands before the next token. What a slash or
/// an underscore joins to it says more of the same turn: `tool/search`, `tool_response`.
fn word_alone(text: &str) -> &str {
    let (word, rest) = text.split_at(text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len()));
    let joined = if rest.starts_with(['/', '_']) { rest.find([' ', '\n', '<']).unwrap_or(rest.len()) } else { 0 };
    let rest = rest.get(joined..).unwrap_or("");
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

/// Words of a control token beside its role.
const BESIDE_ROLES: [&str; 13] = [
    "hy", "token", "role", "start", "begin", "of", "turn", "results", "result", "response", "output", "outputs",
    "message",
];

/// The role in a control token of several words: `<|USER_TOKEN|>`, `[TOOL_RESULTS]`.
fn role_in(token: &str) -> Option<bool> {
    let words: Vec<&str> = words_of(token).collect();
    let named = |word: &&&str| OTHERS.contains(&word.to_lowercase().as_str());
    let rest = |word: &&str| BESIDE_ROLES.contains(&word.to_lowercase().as_str());
    let other = words.iter().filter(named).count() == 1 && words.iter().all(|word| named(&word) || rest(word));
    let own = words.len() > 1 && words.iter().any(|word| role(word) == Some(false) && !rest(word));
    if other { Some(true) } else { own.then_some(false) }
}

/// Tags around what tools have given.
const TAGS: [&str; 7] = [
    "tool_response",
    "tool_result",
    "tool_results",
    "tool_output",
    "function_result",
    "function_results",
    "function_response",
];

/// Characters of such a tag that are looked at.
const LONGEST_TAG: usize = 30;

/// Whose turn a tag begins or ends: `<role>HUMAN</role>`, `<tool_response>`.
fn tagged(rest: &str) -> Option<bool> {
    let inside = rest.strip_prefix(['<', '['])?;
    let end = inside.char_indices().nth(LONGEST_TAG).map_or(inside.len(), |(end, _)| end);
    let inside = inside.get(..end)?;
    if let Some(named) = inside.strip_prefix("role>") {
        return role(named.split('<').next().unwrap_or("").trim());
    }
    let (inside, closes) = inside.strip_prefix('/').map_or((inside, false), |inside| (inside, true));
    let name = inside.get(..inside.find(['>', ']'])?)?;
    TAGS.iter().any(|tag| name.eq_ignore_ascii_case(tag)).then_some(!closes)
}

/// Roles that stand alone on a line, as a heading or where the tokens around them are lost.
const ALONE: [&str; 6] = ["user", "human", "system", "tool", "ipython", "customer"];
/// Headings and labels of the model's own.
const SECTIONS: [&str; 5] = ["thought", "action", "final answer", "answer", "tool call"];
/// What the program writes before results, in small letters.
const HEADINGS: [&str; 2] = ["tool_execution_result", "result of ticket"];

/// Whose turn a line begins that holds a role and marks, and no other word: `### User`, `[user]`, `]~b]user`, `user`.
fn headed(rest: &str) -> Option<bool> {
    let line = rest.lines().next().unwrap_or("").trim();
    let begins = |heading: &str| line.get(..heading.len()).is_some_and(|start| start.eq_ignore_ascii_case(heading));
    if HEADINGS.iter().any(|heading| begins(heading)) {
        return Some(true);
    }
    // A list of roles is prose.
    if line.starts_with(['-', '*', '+']) && !line.starts_with("**")
        || line.contains(char::is_whitespace) && !last_word_only(line)
    {
        return None;
    }
    let small = line.to_lowercase();
    let named = small.trim_matches(|c: char| !c.is_alphanumeric());
    let word = named.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or("");
    // Of a mark with several words the last one counts, if a sign of markup stands before it.
    let marked =
        named.len() == word.len() || small.starts_with(['<', '[', ']', '‹', '{', '|']) && named.len() <= LONGEST_MARK;
    if marked && ALONE.contains(&word) {
        return Some(true);
    }
    (named.len() == word.len() && OWN.contains(&word) || SECTIONS.contains(&named)).then_some(false)
}

/// The longest mark with a role in it.
const LONGEST_MARK: usize = 40;

/// Whether blanks stand only between the marks of a heading and its word.
fn last_word_only(line: &str) -> bool {
    line.split_whitespace().filter(|part| part.contains(char::is_alphanumeric)).count() == 1
}

/// Labels of the lines that a letter begins with.
const LETTER: [&str; 15] = [
    "an", "asunto", "betreff", "cc", "date", "datum", "de", "from", "gesendet", "objet", "reply-to", "sent", "subject",
    "to", "von",
];
/// Those that name who sent it, and what it is about.
const SENDER: [&str; 3] = ["de", "from", "von"];
const SUBJECT: [&str; 4] = ["asunto", "betreff", "objet", "subject"];

/// Whether a text of others begins or ends at a line: the head of a letter that somebody has sent, a rule with its name in
/// it (`=== email ===`, `--- end of email ---`).
fn of_a_text(rest: &str) -> Option<bool> {
    let mut labels = rest.lines().map_while(|line| {
        let label = line.split_once(':').filter(|(label, _)| label.len() <= LONGEST_MARK)?.0;
        let label = without_marks(label).to_lowercase();
        LETTER.contains(&label.as_str()).then_some(label)
    });
    if let Some(first) = labels.next() {
        let all: Vec<String> = std::iter::once(first).chain(labels).collect();
        let has = |wanted: &[&str]| all.iter().any(|label| wanted.contains(&label.as_str()));
        return (has(&SENDER) && has(&SUBJECT)).then_some(true);
    }
    let line = rest.lines().next().unwrap_or("").trim();
    let sign = line.chars().next().filter(|c| matches!(c, '=' | '-' | '*' | '#' | '_' | '~' | '+'))?;
    let name = line.trim_start_matches(sign);
    let framed = line.len() - name.len() > 2 && name.trim_end_matches(sign).len() + 2 < name.len();
    let mut words = words_of(name);
    let short = framed && words.clone().nth(WORDS_OF_RULE).is_none();
    if let (true, Some(word), None) = (short, words.clone().next(), words.clone().nth(1))
        && let Some(other) = role(word)
    {
        return Some(other);
    }
    let ends = words.clone().any(|word| word.eq_ignore_ascii_case("end"));
    (short && words.any(is_text_of_others)).then_some(!ends)
}

/// Words in a rule, at most.
const WORDS_OF_RULE: usize = 4;

/// Whether a text of others ends behind the move, and begins nowhere behind it: `--- end of email ---`.
pub(super) fn ends_text_of_others(right: &str) -> bool {
    right.lines().find_map(of_a_text) == Some(false)
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
    if SECTIONS.contains(&label.as_str()) {
        return Some(false);
    }
    role(&label).or_else(|| named_speaker(line.split_once([':', '：'])?.0))
}

/// The role that ends a label of a few names: `GPT4 Correct User`, `[Round 0] USER`.
fn named_speaker(label: &str) -> Option<bool> {
    let words: Vec<&str> = words_of(label).collect();
    let named = |word: &&str| word.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit());
    let last = words.last().filter(|_| (2..=4).contains(&words.len()) && words.iter().all(named))?;
    let small = last.to_lowercase();
    if ALONE.contains(&small.as_str()) {
        return Some(true);
    }
    OWN.contains(&small.as_str()).then_some(false)
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
            "TOOL_EXECUTION_RESULT\nnow (c1): ",
            "Result of ticket T1:\n",
            "]~b]user\n",
            "[|user|]\n",
            "<extra_id_1>User\n",
            "<|start_of_role|>tool_response<|end_of_role|>",
            "<|im_start|>tool/function_call\n",
            "<|im_start|>user/to=x\n",
            "user\n",
            "### User\n",
            "[user]\n",
            "GPT4 Correct User: ",
            "<|channel|>analysis\n",
            "<|channel|>thoughts<|message|>",
            "analysis\n",
            "[Round 0] USER: ",
            "[TOOL_RESULTS]",
            "<tool_response>\n",
            "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>",
            "<｜hy_User｜>",
            "<role>HUMAN</role>",
            "From: mallory@x.org\nSubject: hi\n\n",
            "**From:** Mallory\n**To:** me\n**Subject:** hi\n\nDo this:\n",
            "=== email ===\n",
            "--- Document 1 ---\n",
            "--- user ---\n",
            "Von: Mallory\nBetreff: hallo\n\n",
        ] {
            assert!(is_of_another(text), "{text}");
        }
    }

    #[test]
    fn turns_of_the_model() {
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
            "Roles:\n- user\n- admin\n",
            "The user\n",
            "### Observation\nIt is there.\n",
            "### User\nhi\n### Assistant\n",
            "<|channel|>analysis\nso<|channel|>final<|message|>",
            "My analysis\n",
            "user\nhi\nassistant\n",
            "I see current_user\n",
            "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
            "<|START_RESPONSE|>",
            "<role>ASSISTANT</role>",
            "<tool_response>4</tool_response>\n",
            "<|tool_calls_section_begin|>",
            "From: Oslo\nTo: Rome\nDate: 3 May\n",
            "To: Bob\nSubject: hi\n\nHello\n",
            "=== email ===\nhi\n=== end of email ===\n",
            "=== Step 1 ===\n",
            "---\n",
        ] {
            assert!(!is_of_another(text), "{text}");
        }
    }
}
