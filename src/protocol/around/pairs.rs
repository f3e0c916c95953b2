//! Pairs of other languages that enclose a move: comments, templates, signs, and lines that say where something begins
//! and ends.

use super::openings::is_open;
use crate::reply::doubt::{self, words_of};
use crate::reply::envelope::names_reasoning;
use std::collections::HashSet;

/// What opens, and what may close it: comments, verbatim text.
const PAIRS: [(&str, &[&str]); 9] = [
    ("<#", &["#>"]),
    ("/*", &["*/"]),
    ("\\begin{", &["\\end{"]),
    ("<!--", &["-->", "-- >"]),
    ("#if", &["#endif"]),
    ("#|", &["|#"]),
    ("\\iffalse", &["\\fi"]),
    ("{{#", &["{{/"]),
    ("...", &["...done thinking"]),
];
/// Tags of templates, each of which is closed on its own side.
const TEMPLATES: [&str; 3] = ["{%", "<?", "<%"];
/// Signs of which two or more in a row stand on both sides of what they mark: `~~`, `||`.
const SIGNS: [char; 8] = ['~', '|', '$', '^', '%', '+', ':', '!'];
/// The same of which one kind opens and another one closes.
const FACING: [(char, char); 1] = [('<', '>')];
/// Words of lines that say where something begins, and where it ends.
const BEGINS: [&str; 4] = ["begin", "start", "open", "region"];
const ENDS: [&str; 5] = ["end", "stop", "finish", "close", "endregion"];
/// Words of such a line, at most.
const WORDS: usize = 6;

/// Whether one of the pairs opens before the move and closes behind it.
pub(super) fn enclose(left: &str, right: &str) -> bool {
    let in_pair = |(opening, closing): &(&str, &[&str])| {
        let closes = |text: &str| closing.iter().any(|closing| text.contains(closing));
        left.rfind(opening).and_then(|at| left.get(at..)).is_some_and(|rest| !closes(rest)) && closes(right)
    };
    let in_template = |tag: &str| left.contains(tag) && right.contains(tag);
    PAIRS.iter().any(in_pair)
        || TEMPLATES.iter().any(|tag| in_template(tag))
        || in_branch(left, right)
        || in_signs(left, right)
        || in_lines(left, right)
        || in_document(left, right)
        || in_section(left, right)
        || is_closing(right)
        || is_open(left)
}

/// The first sign behind a move that stood in a comment, a text or a branch.
const CLOSINGS: [&str; 8] = ["\"\"\"", "#endif", "#endregion", "#>", "'''", "*/", "-->", "|#"];

/// Whether the first sign behind the move ends a text.
fn is_closing(right: &str) -> bool {
    let text = right.trim_start();
    CLOSINGS.iter().any(|closing| text.starts_with(closing))
}

/// A section whose title says that it rehearses, with another section behind the move.
fn in_section(left: &str, right: &str) -> bool {
    let title =
        |line: &str| line.trim_start().starts_with('#').then(|| line.trim_matches(['#', ' ', ':', '*']).to_lowercase());
    let rehearsed =
        left.lines().rev().find_map(title).is_some_and(|title| names_reasoning(&title) || doubt::is_shown(&title));
    rehearsed && right.lines().any(|line| title(line).is_some())
}

/// Names of sections that a model answers in.
const ANSWERS: [&str; 5] = ["answer", "final", "final answer", "final response", "response"];

/// Whether the section of an answer begins behind the move: `<answer>`, `## Final answer`.
pub(super) fn answers(right: &str) -> bool {
    right.lines().map(str::trim_start).any(|line| {
        let tag = line.strip_prefix('<').and_then(|rest| rest.split_once('>')).map(|(name, _)| name);
        let title = || line.strip_prefix('#').map(|rest| rest.trim_matches(['#', ' ', ':', '*']));
        tag.or_else(title).is_some_and(|name| ANSWERS.contains(&name.to_lowercase().replace('_', " ").as_str()))
    })
}

/// `if ok; then` on a line before the move, and `fi` on one behind it.
fn in_branch(left: &str, right: &str) -> bool {
    let begins = |line: &str| line.trim_start().starts_with("if ") && line.trim_end().ends_with("then");
    left.lines().any(begins) && right.lines().any(|line| matches!(line.trim(), "fi" | "end" | "end if"))
}

/// The same signs on both sides, next to the move.
fn in_signs(left: &str, right: &str) -> bool {
    let (left, right) = (left.trim_end(), right.trim_start());
    let Some(sign) = right.chars().next() else { return false };
    let Some(opening) = SIGNS.into_iter().map(|sign| (sign, sign)).chain(FACING).find(|(_, closing)| *closing == sign)
    else {
        return false;
    };
    let before = left.len() - left.trim_end_matches(opening.0).len();
    let after = right.len() - right.trim_start_matches(sign).len();
    // Three and more tildes are a fence.
    let fence = sign == '~' && before > 2;
    before >= 2 && after >= 2 && !fence
}

/// `=== BEGIN EXAMPLE ===` and `=== END EXAMPLE ===`.
fn in_lines(left: &str, right: &str) -> bool {
    let ends: HashSet<Vec<String>> = right.lines().filter_map(|line| without_one_of(line, &ENDS)).collect();
    !ends.is_empty() && left.lines().filter_map(|line| without_one_of(line, &BEGINS)).any(|line| ends.contains(&line))
}

/// The words of a short line without the first or last one, if that is one of `marks`.
fn without_one_of(line: &str, marks: &[&str]) -> Option<Vec<String>> {
    let words = words_of(line);
    let mut words: Vec<String> = words.take(WORDS + 1).map(str::to_lowercase).collect();
    if words.len() > WORDS {
        return None;
    }
    let is_mark = |word: Option<&String>| word.is_some_and(|word| marks.contains(&word.as_str()));
    if is_mark(words.first()) {
        words.remove(0);
    } else if is_mark(words.last()) {
        words.pop();
    } else {
        return None;
    }
    Some(words)
}

/// A here-document of a shell: `<<'EOF'`, and the same word on a line behind the move.
fn in_document(left: &str, right: &str) -> bool {
    let Some(at) = left.rfind("<<") else { return false };
    let rest = left.get(at + 2..).unwrap_or("").trim_start_matches(['-', '~', ' ', '\'', '"', '\\']);
    let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let word = rest.get(..length).unwrap_or("");
    !word.is_empty() && right.lines().any(|line| line.trim().trim_end_matches('>') == word)
}

/// Whether a line says that what follows shows something: `::: example`, `!!! example`, `> [!EXAMPLE]`,
/// `.. code-block:: json`, `example: |`.
pub(super) fn announces(line: &str) -> bool {
    let shown = |mark: &str| line.strip_prefix(mark).is_some_and(is_shown);
    let block = line.trim_end_matches(['-', '+']);
    shown(":::")
        || shown("!!!")
        || shown("???")
        || shown(".. ") && line.ends_with("::")
        || line.starts_with(".. code")
        || line.strip_prefix('>').is_some_and(|rest| rest.trim_start().starts_with("[!"))
        || block.ends_with(": |")
        || block.ends_with(": >")
}

/// Whether the words behind the marks of a fence say that its text is shown.
pub(super) fn is_shown(words: &str) -> bool {
    words_of(words).any(doubt::is_shown_or_not_meant) || is_switched_off(words)
}

/// Settings of a fence by which its code is run.
const RUNNING: [&str; 7] = ["active", "enabled", "eval", "evaluate", "exec", "execute", "run"];

/// Whether a setting behind the marks of a fence says that its code isn't run: `exec=false`, `{eval=FALSE}`, `no-run`.
fn is_switched_off(words: &str) -> bool {
    let small = words.to_lowercase();
    let words: Vec<&str> = words_of(&small).collect();
    words.windows(2).any(|pair| {
        let [first, second] = pair else { return false };
        RUNNING.contains(first) && matches!(*second, "0" | "false" | "never" | "no" | "off")
            || *first == "no" && RUNNING.contains(second)
    })
}

/// Whether the line before this place opens a fence that shows something.
pub(super) fn in_shown_fence(before: &str) -> bool {
    let line = before.trim_end().rsplit('\n').next().unwrap_or("");
    // The tag of the move may stand before the fence.
    let line = if line.starts_with('<') { line.split_once('>').map_or(line, |(_, rest)| rest) } else { line };
    let line = line.trim_start();
    let words = line.trim_start_matches(['`', '~']);
    line.len() - words.len() >= 3 && is_shown(words)
}

#[cfg(test)]
mod tests {
    use super::{answers, enclose};

    #[test]
    fn sections_of_an_answer() {
        for text in ["\n<answer>No</answer>", "\n### Response:\nNo", "\n## Final answer\nNo", "<final>\nNo"] {
            assert!(answers(text), "{text}");
        }
        for text in ["\n</answer>", "\nThe answer is no.", "\n## Next", "\n<b>answer</b>"] {
            assert!(!answers(text), "{text}");
        }
    }

    #[test]
    fn pairs_of_other_languages() {
        for (left, right) in [
            ("/*\n", "\n*/"),
            ("{% raw %}\n", "\n{% endraw %}"),
            ("\\begin{verbatim}\n", "\n\\end{verbatim}"),
            ("~~", "~~"),
            ("so ||", "|| no"),
            ("<<<", ">>>"),
            ("<#\n", "\n#>"),
            ("=== BEGIN EXAMPLE ===\n", "\n=== END EXAMPLE ==="),
            ("# Example start\n", "\n# example end\nHi"),
            ("cat <<'EOF' > call.json\n", "\nEOF"),
            ("```diff\n-", "\n```"),
            ("#region x\n", "\n#endregion x"),
            ("<<<EMAIL\n", "\nEMAIL>>>"),
            ("", "\n*/"),
            ("", "\n-->\nSo"),
            ("", "\n#endif"),
            ("#if 0\n", "\n#endif"),
            ("<?php if ($ok): ?>\n", "\n<?php endif; ?>"),
            ("{{#if ok}}\n", "\n{{/if}}"),
            ("if ok; then\n", "\nfi"),
            ("Thinking...\n", "\n...done thinking.\nNo."),
            ("/*\n", ""),
            ("<!--\n", "\nOk."),
            ("\"\"\"\n", ""),
            ("## Reasoning\n", "\n## Answer\nNo."),
            ("```json title=\"example\"\n", "\n```"),
            ("```json cancelled\n", "\n```"),
            ("```json {.dry-run}\n", ""),
        ] {
            assert!(enclose(left, right), "{left}…{right}");
        }
        for (left, right) in [
            ("", ""),
            ("/* so */\n", "\n/* there */"),
            ("~~~json\n", "\n~~~"),
            ("```json\n", "\n```"),
            ("---\n", "\n---"),
            ("I begin:\n", "\nThis is the end of it."),
            ("```diff\n-a\n```\n", ""),
            ("1 << n\n", "\nm"),
            ("I list src/*.py now.\n", ""),
            ("## Reasoning\n", "\nDone."),
            ("/* so */\n", ""),
        ] {
            assert!(!enclose(left, right), "{left}…{right}");
        }
    }
}
