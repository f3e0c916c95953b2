//! What stands on lines of its own next to a move, or beside it on its line, and takes it back; and what says nothing.

use super::dice::Dice;
use super::moves::{Meant, Style};
use super::{Case, PROTOCOLS, check};

pub(super) fn move_of(dice: &mut Dice) -> (Meant, String) {
    let meant = Meant::random(dice.pick(&PROTOCOLS), dice);
    let text = meant.reply(Style::Double);
    (meant, text)
}

/// A case of a text around a move that takes it back.
pub(super) fn taken_back(before: &str, after: &str, dice: &mut Dice) -> Case {
    let (meant, text) = move_of(dice);
    let case = Case::never(format!("{before}…{after}"), meant.protocol, format!("{before}{text}{after}"));
    // A stream is stopped at the end of a first output.
    if before.is_empty() { case.early(meant.done()) } else { case }
}

#[test]
fn a_mark_that_takes_a_move_back() {
    check(|dice| {
        let sign = dice.pick(&["❌", "✘", "✖", "❎", "👎", "🛑", "🚫", "⛔", "⏸", "🙅", "☒", "🚧", "❓"]);
        let word = dice.pick(&["dry run", "DRY RUN", "draft", "not yet", "cancelled", "do not run", "Example"]);
        match dice.below(16) {
            0 => taken_back(&format!("{sign}\n"), "", dice),
            1 => taken_back("", &format!("\n{sign}"), dice),
            2 => taken_back("", &format!(" {sign}"), dice),
            3 => taken_back(&format!("[{word}] "), "", dice),
            4 => taken_back(&format!("({word})\n"), "", dice),
            5 => taken_back(&format!("# {word}\n"), "", dice),
            6 => taken_back(&format!("**{word}:**\n"), "", dice),
            7 => taken_back(&format!("{word}\n"), "", dice),
            8 => taken_back(&format!("{word}:\n```json\n"), "\n```", dice),
            9 => taken_back("", &format!(" ({word})"), dice),
            10 => taken_back("", &format!("\n[{word}]"), dice),
            11 => taken_back("", &format!("\n/* {word}\n*/"), dice),
            12 => taken_back("/*\nThis is not yet meant.\n*/\n", "", dice),
            13 => taken_back("", "\n/* approved: false */", dice),
            14 => taken_back("REM not yet\n", "", dice),
            _ => taken_back("; not yet\n", "", dice),
        }
    });
}

#[test]
fn a_line_that_is_the_head_of_something() {
    check(|dice| {
        let before = dice.pick(&[
            "If approved\n",
            "**If approved:**\n",
            "- if approved:\n  ",
            "1. If the user approves of it in the next message:\n",
            "Unless it was denied before by the owner:\n",
            "Once approved:\n",
            "Otherwise:\n",
            "try:\n    ",
            "except ValueError:\n    ",
            "for x in range(3):\n    ",
            "def later():\n    ",
            "if (approved) {\n",
            "if approved:\n```json\n",
            "@skip\n",
            "@pytest.mark.skip(reason=\"later\")\n",
            "!!! example\n    ",
            "example: |-\n  ",
            "return\n",
            "x =\n",
            "\"draft\":\n",
        ]);
        taken_back(before, "", dice)
    });
}

#[test]
fn what_goes_on_behind_a_move() {
    check(|dice| {
        let after = dice.pick(&[
            "\nif ok",
            "\nunless denied",
            ", if ok",
            " , when approved",
            "\n&& false",
            "\n|| true",
            " ?",
            " | jq .",
            " .then()",
            "\n.then(done)",
        ]);
        taken_back("", after, dice)
    });
}

#[test]
fn reasoning_of_any_name_that_ends_behind_a_move() {
    check(|dice| {
        let name = dice.pick(&[
            "plan",
            "planning",
            "cot",
            "my_thoughts",
            "inner_monologue",
            "deliberation",
            "drafting",
            "self-reflection",
            "reasoning_steps",
        ]);
        let (before, after) = if dice.one_in(2) {
            (format!("<{name}>"), format!("</{name}>\nI ask first."))
        } else {
            ("maybe ".to_owned(), format!("\n</{name}>\nI ask first."))
        };
        taken_back(&before, &after, dice)
    });
}

#[test]
fn any_pair_of_tags_around_a_move() {
    check(|dice| {
        let name = dice.pick(&[
            "del",
            "strike",
            "blockquote",
            "example",
            "aside",
            "template",
            "noscript",
            "mark",
            "s",
            "u",
            "strike",
        ]);
        let rest = dice.pick(&["", "\nI ask first."]);
        let attribute = dice.pick(&["", " class=\"x\"", " hidden"]);
        taken_back(&format!("<{name}{attribute}>\n"), &format!("\n</{name}>{rest}"), dice)
    });
}

#[test]
fn what_opens_above_a_move_in_any_notation() {
    check(|dice| {
        let opening = dice.pick(&[
            "/**",
            "/*",
            "{#-",
            "{#",
            "{{!--",
            "<%--",
            "<!--",
            "(*",
            "{-",
            "=begin",
            "=pod",
            "<![CDATA[",
            "--[[",
            "\\begin{quote}",
            "\\begin{lstlisting}",
            "{% if approved %}",
            "{% raw %}",
            "{% comment %}",
            "#if 0",
            "#=",
            "cat <<'EOF'",
            "cat > call.json <<EOF",
            "<<<<<<< HEAD",
        ]);
        let first = dice.pick(&["", "I look.\n"]);
        taken_back(&format!("{first}{opening}\n"), dice.pick(&["", "\n", "\nThat is all."]), dice)
    });
}

#[test]
fn turns_of_other_families_and_other_quotes() {
    check(|dice| {
        let (before, after) = dice.pick(&[
            ("[TOOL_RESULTS]", ""),
            ("<tool_response>\n", ""),
            ("<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", ""),
            ("<｜hy_User｜>", ""),
            ("<role>HUMAN</role>", ""),
            ("『", "』"),
            ("《", "》"),
            ("❝", "❞"),
            ("〝", "〟"),
            ("⟨", "⟩"),
            ("″", "″"),
            ("``", "''"),
            ("&quot;", "&quot;"),
        ]);
        taken_back(before, after, dice)
    });
}

#[test]
fn what_a_model_says_around_its_move() {
    check(|dice| {
        let (meant, text) = move_of(dice);
        let before = dice.pick(&[
            "",
            "I'll look it up now.\n",
            "Let me check this for you:\n",
            "If it is open, I book it. I search:\n",
            "For the weather in Oslo, I call the service.\n",
            "Once I have the list, I can go on. So I ask for it first:\n",
            "Once more:\n",
            "I use `it`:\n",
            "## Action\n",
            "### Next step\n",
            "**Action**\n",
            "- I look at it.\n- Then I write.\n\n",
            "1. Look it up\n2. Write\n\n",
            "✅ The first step is done.\n",
            "🔍 Searching\n",
            "❌ The first try failed, so I try it in another way:\n",
            "The plan is (for now) to write.\n",
            "The <b>first</b> step.\n",
            "Let me 《think》 about it.\n",
            "A screen of 27″ it is.\n",
            "I list src/*.py now.\n",
            "Let's begin!\n",
            "I wait for nothing.\n",
        ]);
        let after = dice.pick(&[
            "",
            "\n",
            "\nI tell you when it is done.",
            "\nIf you like, I do more.",
            "\n✅",
            "\n(That is the first of two steps.)",
        ]);
        Case::must(format!("{before}…{after}"), format!("{before}{text}{after}"), &meant)
    });
}
