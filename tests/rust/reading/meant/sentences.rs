//! Sentences beside a move that take it back, or remarks in it that do; and those that tell what the model does.

use super::dice::Dice;
use super::lines::{move_of, taken_back};
use super::moves::{Meant, payload, reply};
use super::{Case, PROTOCOLS, check};
use serde_json::json;

/// That the move is not to be made.
fn denial(dice: &mut Dice) -> String {
    let doing = dice.pick(&["run", "execute", "call", "make", "send", "invoke", "submit", "use"]);
    let object = dice.pick(&["", " this", " it", " that", " this call", " the following", " the call", " these yet"]);
    let not = dice.pick(&[
        "Do not",
        "Don't",
        "Never",
        "Please do not",
        "I will not",
        "I won't",
        "We must not",
        "You should not",
    ]);
    format!("{not} {doing}{object}")
}

/// That it is made only if somebody agrees.
fn condition(dice: &mut Dice) -> String {
    let begins = dice.pick(&["If", "Only if", "Once", "Unless", "When", "After", "As soon as", "Only when"]);
    let agrees = dice.pick(&[
        "you approve",
        "the user agrees",
        "it is approved by the owner of the account",
        "you confirm it",
        "permission is given",
        "you say it is okay",
    ]);
    format!("{begins} {agrees}")
}

/// That it is no more than an example.
fn example(dice: &mut Dice) -> String {
    let is = dice.pick(&["This is", "That was", "The call below is", "The following is", "These are"]);
    let merely = dice.pick(&["", " only", " just", " merely", " purely"]);
    format!(
        "{is}{merely}{}",
        dice.pick(&[" an example", " a draft", " hypothetical", " for demonstration", " a dry run"])
    )
}

fn label(dice: &mut Dice) -> &'static str {
    dice.pick(&["", "", "Thought: ", "Note: ", "**Thought:** ", "Next step: "])
}

#[test]
fn a_sentence_that_leads_to_a_move_and_takes_it_back() {
    check(|dice| {
        let said = match dice.below(4) {
            0 => denial(dice),
            1 => condition(dice),
            2 => example(dice),
            _ => dice.pick(&["Wrong", "e.g.", "NOT", "Hypothetically", "Not yet", "For instance", "Later"]).to_owned(),
        };
        let first = dice.pick(&["", "I looked at it. ", "The file is there.\n"]);
        let end = dice.pick(&[":\n", ": ", ":\n\n", "\n"]);
        let label = label(dice);
        taken_back(&format!("{first}{label}{said}{end}"), "", dice)
    });
}

#[test]
fn a_sentence_behind_a_move_that_takes_it_back() {
    check(|dice| {
        let said = match dice.below(4) {
            0 => denial(dice),
            1 => condition(dice),
            2 => example(dice),
            _ => dice
                .pick(&[
                    "Never mind",
                    "Cancel that",
                    "Wait, no",
                    "Actually, no",
                    "Scratch that",
                    "The call above must not be made",
                    "I did not run this",
                    "Not executed",
                    "Waiting for your confirmation",
                ])
                .to_owned(),
        };
        let (open, close) =
            dice.pick(&[("\n", ""), ("\n(", ")"), ("\n*", "*"), ("\n<thoughts>", "</thoughts>"), ("\n\n", "")]);
        taken_back("", &format!("{open}{said}.{close}"), dice)
    });
}

#[test]
fn a_section_of_an_answer_behind_a_move() {
    check(|dice| {
        let name = dice.pick(&["answer", "final answer", "final response", "response", "Answer", "Final Answer"]);
        let after = match dice.below(5) {
            0 => format!("\n## {name}\nNo."),
            1 => format!("\n### {name}:\nNo."),
            2 => format!("\n<{}>No.</{}>", name.replace(' ', "_"), name.replace(' ', "_")),
            3 => "\n<|START_RESPONSE|>No.<|END_RESPONSE|>".to_owned(),
            _ => "<|begin_of_solution|>No.".to_owned(),
        };
        taken_back("", &after, dice)
    });
}

#[test]
fn a_setting_beside_a_move_in_any_case() {
    check(|dice| {
        let key = dice.pick(&["Status", "STATUS", "Mode", "Approval", "Execution state"]);
        let value =
            dice.pick(&["pending", "dry run", "not approved", "**cancelled**", "`draft`", "on hold", "Rejected"]);
        let set = match dice.below(4) {
            0 => format!("{key}: {value}"),
            1 => {
                format!("{}: {}", dice.pick(&["Approved", "Is approved", "Execute"]), dice.pick(&["no", "No", "false"]))
            }
            2 => format!("{}: yes", dice.pick(&["Dry run", "Requires approval", "DRY-RUN", "Draft"])),
            _ => format!("{}: you agree", dice.pick(&["Condition", "Precondition", "When"])),
        };
        if dice.one_in(2) {
            taken_back(&format!("{set}\n"), "", dice)
        } else {
            taken_back("", &format!("\n{set}"), dice)
        }
    });
}

#[test]
fn a_remark_in_a_move_that_takes_it_back() {
    check(|dice| {
        let meant = Meant::random(dice.pick(&PROTOCOLS), dice);
        let key = dice.pick(&["note", "reason", "comment", "explanation", "remarks"]);
        let said = match dice.below(4) {
            0 => denial(dice),
            1 => condition(dice),
            2 => example(dice),
            _ => {
                dice.pick(&["dry run", "not yet", "DRAFT", "cancelled", "wait for approval", "example only"]).to_owned()
            }
        };
        let said = if dice.one_in(3) { json!([said]) } else { json!(said) };
        let mut object = meant.object();
        object[key] = said;
        Case::never(
            format!("{key} in the move"),
            meant.protocol,
            reply(meant.protocol, &payload(meant.protocol, &object.to_string())),
        )
    });
}

#[test]
fn sentences_that_tell_what_the_model_does() {
    check(|dice| {
        let (meant, text) = move_of(dice);
        let before = dice.pick(&[
            "I will not guess, so I call the tool:\n",
            "I don't know it yet, so I look it up:\n",
            "Not found. Let me search again.\n",
            "I can't do that without the data:\n",
            "This was not executed, so I run it again:\n",
            "It has not been sent yet.\n",
            "After confirming the balance, I go on:\n",
            "The user confirmed, so I do it:\n",
            "You approved it. I go on.\n",
            "While we wait, I look:\n",
            "The draft is ready:\n",
            "Let me try an example:\n",
            "Do not worry.\n",
            "Thought: I should not wait. I look.\n",
            "Status: unpaid. I look.\n",
            "As you agreed, I look:\n",
            "Approved: yes\n",
            "I would like to look first:\n",
        ]);
        let after = dice.pick(&[
            "",
            "\nOnce I have the result, I will answer.",
            "\nIf you need anything else, just ask.",
            "\nIf you agree, I'll also send it.",
            "\nPlease wait.",
            "\nNo further action is needed.",
            "\nI do not need more.",
        ]);
        Case::must(format!("{before}…{after}"), format!("{before}{text}{after}"), &meant)
    });
}

#[test]
fn remarks_in_words() {
    check(|dice| {
        let meant = Meant::random(dice.pick(&PROTOCOLS), dice);
        let said = dice.pick(&[
            "The user asked for it, if possible.",
            "not found before",
            "failed before",
            "Format",
            "If the user agrees, I book it later. First I look.",
            "the first of two",
        ]);
        let mut object = meant.object();
        object["reason"] = json!(said);
        let text = reply(meant.protocol, &payload(meant.protocol, &object.to_string()));
        Case::must(said, text, &meant)
    });
}
