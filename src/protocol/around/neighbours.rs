//! What stands next to a move, on its line or alone on the one above or below, and says that it is not made, not yet, or
//! only in some case.

use super::code::{DENIALS, goes_on, is_branch, is_value};
use super::enclosure::strip_marks;
use super::pairs;
use crate::protocol::retraction::{Beside, retracts, without_label};
use crate::reply::doubt::{is_deciding, is_mark, is_shown_or_not_meant, words_of};

/// Words of a mark, at most.
const WORDS: usize = 4;
/// Whether the line before a move, or the text directly behind it, takes it back.
pub(super) fn take_back(left: &str, right: &str) -> bool {
    line_above(left).is_some_and(|line| pairs::announces(line) || is_begun(line) || leads_elsewhere(line))
        || line_behind(right)
            .is_some_and(|line| denies(line) || goes_on(line) || is_alternative(line) || says(line, Beside::Behind))
}

/// Whether what is said before a move, on its line or the one above, takes it back.
pub(super) fn leads_elsewhere(line: &str) -> bool {
    let said = without_label(line);
    let judged = |line: &str| is_branch(line) || denies(line) || is_alternative(line);
    judged(line) || said.len() < line.len() && judged(said) || says(line, Beside::Before)
}

/// Whether a line says that the move is not made. Tags are no words of it.
fn says(line: &str, beside: Beside) -> bool {
    if line.contains('<') { retracts(&strip_marks(line), beside) } else { retracts(line, beside) }
}

/// The name of one of several moves to choose from: `Option A:`, `## Alternative 2`.
fn is_alternative(line: &str) -> bool {
    let small = line.to_lowercase();
    let words: Vec<&str> = words_of(&small).take(3).collect();
    let named = |word: &str| word.chars().count() == 1 || word.chars().all(|c| c.is_ascii_digit());
    let option =
        |word: &str| matches!(word, "alternative" | "approach" | "candidate" | "choice" | "option" | "variant");
    match words.as_slice() {
        [word] => option(word) && !line.ends_with(char::is_alphanumeric),
        [word, name] => option(word) && named(name),
        // More may be said of it: "Option 1 - pay now:", but not "Option 1 is the best:".
        [word, name, _] if option(word) && named(name) => {
            let behind = small.split_once(word).and_then(|(_, rest)| rest.trim_start().strip_prefix(name));
            behind.is_some_and(|rest| rest.trim_start().starts_with(['-', '–', '—', ':', '(', '.', ')']))
        }
        _ => false,
    }
}

/// The last line of a text that ends with it, and perhaps with the first line of a fence.
fn line_above(left: &str) -> Option<&str> {
    let above = left.trim_end_matches([' ', '\t']).strip_suffix('\n')?.trim_end();
    let (before, line) = above.rsplit_once('\n').unwrap_or(("", above));
    let fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
    let line = if fence { before.trim_end().rsplit('\n').next().unwrap_or("") } else { line };
    Some(line.trim()).filter(|line| !line.is_empty())
}

/// The first line of a text that begins behind a move, without the end of a fence and a rule.
fn line_behind(right: &str) -> Option<&str> {
    let text = right.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '`' | '~'));
    let is_rule = |line: &&str| {
        line.len() > 2 && line.chars().all(|c| matches!(c, '-' | '=' | '*' | '_')) || line.trim().is_empty()
    };
    text.lines().map(str::trim_end).find(|line| !is_rule(line))
}

/// Whether a line begins something that the next one ends: `x =`, `return`, `"draft":`, `@skip`.
fn is_begun(line: &str) -> bool {
    let decorator = line.strip_prefix('@').is_some_and(|name| {
        let name = name.split('(').next().unwrap_or("").to_lowercase();
        !name.contains(' ') && name.split(|c: char| !c.is_alphanumeric()).any(is_shown_or_not_meant)
    });
    // A name in backticks, or in a sentence, introduces the move.
    let named = line.ends_with(':') && !line.starts_with(['"', '\'']);
    decorator || line.split_whitespace().count() <= WORDS && is_value(line) && !named
}

/// Whether a text is nothing but a mark that takes back what it stands beside: `[DRY RUN]`, `(draft)`, `# not yet`, `❌`.
pub(super) fn denies(text: &str) -> bool {
    if text.len() <= 80 && text.contains('<') {
        return denies(&strip_marks(text));
    }
    let line = text.trim();
    let words = || words_of(line);
    // The word that begins a remark is one more than a mark has.
    let most = WORDS + usize::from(line.starts_with("REM "));
    if line.len() > 80 || line.is_empty() || words().nth(most).is_some() {
        return false;
    }
    let small = line.to_lowercase();
    let words: Vec<&str> = words_of(&small).collect();
    let signed = DENIALS.iter().any(|sign| line.contains(sign));
    let (words, remark) = match words.split_first() {
        Some((&"rem", rest)) if line.starts_with("REM ") => (rest, true),
        _ => (words.as_slice(), line.starts_with([';', '%'])),
    };
    let Some(first) = words.first() else { return signed };
    if words.len() > WORDS {
        return false;
    }
    let bracketed =
        line.starts_with(['(', '[', '（', '【']) && line.trim_end_matches(['.', ':']).ends_with([')', ']', '）', '】']);
    let headed = line.starts_with(['#', '*', '_', '=', '!']);
    let said = words.join(" ");
    is_mark(&said)
        || (bracketed || remark) && words.iter().any(|word| is_deciding(word))
        || headed && (*first == "don" || said.starts_with("do not "))
}

#[cfg(test)]
mod tests {
    use super::take_back;

    #[test]
    fn lines_that_take_a_move_back() {
        for (left, right) in [
            ("❌\n", ""),
            ("👎\n", ""),
            ("return\n", ""),
            ("x =\n", ""),
            ("\"draft\":\n", ""),
            ("@pytest.mark.skip\n", ""),
            ("[DRY RUN]\n", ""),
            ("(draft)\n", ""),
            ("# DRY RUN\n", ""),
            ("# not yet\n", ""),
            ("**Draft:**\n", ""),
            ("REM not yet\n", ""),
            ("; not yet\n", ""),
            ("Not yet.\n", ""),
            ("if approved\n", ""),
            ("**If the user approves:**\n", ""),
            ("1. If approved by the user in the next message:\n", ""),
            ("Once approved:\n", ""),
            ("Otherwise:\n", ""),
            ("try:\n", ""),
            ("for x in y:\n", ""),
            ("def f():\n", ""),
            ("if (ok) {\n", ""),
            ("if approved:\n```json\n", "\n```"),
            ("!!! example\n", ""),
            ("## Mock\n\n", ""),
            ("**Pending:**\n", ""),
            ("[paused]\n", ""),
            ("On approval:\n", ""),
            ("Option A:\n", "\n\nOption B: ask the user."),
            ("Option 1 - pay now:\n", ""),
            ("Approach B (slower):\n", ""),
            ("", "\nOption B: ask. I choose B."),
            ("Pending approval.\n", ""),
            ("**Fake call:**\n", ""),
            ("", "\n# cancel"),
            ("1. ", "\n2. Ask the user first"),
            ("", "\n---\nEDIT: no, ask first."),
            ("example: |-\n", ""),
            ("", "\nif ok"),
            ("", ", if ok"),
            ("", "\n&& false"),
            ("", "\n|| true"),
            ("", " (dry run)"),
            ("", " [cancelled]"),
            ("", " ?"),
            ("", " | jq ."),
            ("", " .then()"),
            ("", "\n```\n❌"),
        ] {
            assert!(take_back(left, right), "{left}…{right}");
        }
    }

    #[test]
    fn lines_that_say_nothing_of_it() {
        for (left, right) in [
            ("I'll look it up now.\n", ""),
            ("I look it up:\n", ""),
            ("If it is open, I book it. First I search:\n", ""),
            ("For the weather, let me call the tool:\n", ""),
            ("For Oslo:\n", ""),
            ("I use `now`:\n", ""),
            ("Once more:\n", ""),
            ("## Action\n", ""),
            ("**Action**\n", ""),
            ("## Test\n", ""),
            ("**Sample query:**\n", ""),
            ("Options:\n", ""),
            ("## Option prices\n", ""),
            ("Option 1 is the best one:\n", ""),
            ("Cancel the order:\n", ""),
            ("The next draft of the letter:\n", ""),
            ("", "\n---\nNext I look at the options."),
            ("- search\n", ""),
            ("✅ Step one is done.\n", ""),
            ("❌ The first try failed, so I try again:\n", ""),
            ("=====\n", ""),
            ("(step 1)\n", ""),
            ("I wait until it is open.\n", ""),
            ("@ann, I look.\n", ""),
            ("", "\nDone."),
            ("", "\nonce more"),
            ("", "\nIf you like, I do more."),
            ("", "\n(That is the first of two.)"),
            ("", "\n| a | b |"),
            ("", "\n.env is next"),
            ("", "\n- if it fails, I tell you so at once"),
        ] {
            assert!(!take_back(left, right), "{left}…{right}");
        }
    }
}
