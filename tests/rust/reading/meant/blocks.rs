//! Broken pieces between a protocol's own marks: a sentence in the first of two blocks (A8), members behind a stray line
//! (A9b), a first output that is broken (A10).

use super::dice::Dice;
use super::moves::{Meant, STYLES, Style, bare_tags, tags, value};
use super::pieces::prose;
use super::{Case, check};

#[test]
fn text_behind_the_array_of_the_first_block_refuses_the_second() {
    check(|dice| {
        let first = Meant::random("chatty", dice);
        let second = first.other(dice);
        let style = if dice.one_in(2) { Style::Double } else { dice.pick(&STYLES) };
        let (label, noise) = match dice.below(5) {
            0 => ("observation", "Observation: 4".to_owned()),
            1 => ("result", "TOOL_EXECUTION_RESULT\nwrite (c1): 4".to_owned()),
            2 => ("condition", "Only if that worked, go on.".to_owned()),
            3 => ("prose", prose(dice)),
            _ => ("comment", "# 4\nThen:".to_owned()),
        };
        let (one, two) = (first.payload(style), second.payload(style).replace("c1", "c2"));
        let between = dice.pick(&["", "\n", "\n\n"]);
        let text = format!("<tool>{one}\n{noise}\n</tool>{between}<tool>{two}</tool>");
        // A stream may be stopped at the first block.
        Case::never(label, "chatty", text).early(first.done())
    });
}

/// What a model writes by mistake before it goes on.
fn slip(dice: &mut Dice) -> String {
    let slips = ["``}", "```", "}", "]", "}}", "...", "` }", "```json", "'", "\u{feff}"];
    let count = 1 + dice.below(3);
    let slips: Vec<&str> = (0..count).map(|_| dice.pick(&slips)).collect();
    slips.join(dice.pick(&["\n", " ", "\n\n"]))
}

#[test]
fn members_behind_a_slip_in_the_arguments_are_not_lost() {
    check(|dice| {
        let protocol = dice.pick(&super::PROTOCOLS);
        let mut meant = Meant::random(protocol, dice);
        // No value has closing brackets of its own: what follows belongs to the arguments.
        meant.args.values_mut().for_each(|argument| *argument = value(dice, 0));
        let style = if dice.one_in(2) { Style::Double } else { dice.pick(&STYLES) };
        let payload = meant.payload(style);
        let extra = format!("{}{}{}", style.key("wording"), style.colon(), style.string("ledger"));
        // Before the last run of closing brackets: the arguments are still open.
        let kept = payload.trim_end_matches([']', '}']);
        let closers = &payload[kept.len()..];
        let early = &closers[..dice.below(closers.len() + 1)];
        let comma = dice.pick(&[", ", "\n, ", ",\n"]);
        let [open, close] = if protocol == "react" && dice.one_in(2) { ["```json\n", "\n```"] } else { tags(protocol) };
        let slip = slip(dice);
        let text = format!("{open}{kept}{early}\n{slip}\n{comma}{extra}{closers}{close}");
        let mut whole = meant.clone();
        whole.args.insert("wording".to_owned(), "ledger".into());
        let case = Case::at_most("slip", text, &whole);
        // A closed object is a whole move for a stream, which never sees what follows.
        let closed = early.len() + slip.matches([']', '}']).count() >= closers.len();
        if closed { case.early(meant.done()) } else { case }
    });
}

#[test]
fn a_first_output_that_is_broken_is_not_prose() {
    check(|dice| {
        let protocol = dice.pick(&["ticket", "chatty"]);
        let first = Meant::random(protocol, dice);
        let second = first.other(dice);
        let style = if dice.one_in(2) { Style::Double } else { dice.pick(&STYLES) };
        let whole = first.payload(style);
        let (label, broken) = match dice.below(5) {
            0 => {
                let ends: Vec<usize> = whole.char_indices().map(|(at, _)| at).filter(|at| *at > 8).collect();
                ("cut", whole[..dice.pick(&ends)].trim_end_matches([']', '}', ',', ' ']).to_owned() + ",")
            }
            1 => {
                let close = style.quotes()[1];
                let at_a_quote = |text: &str, by: &str| text.replacen(by, &format!("{}{close} x", &by[..1]), 1);
                ("quote", at_a_quote(&whole, if protocol == "chatty" { "c1" } else { "Go on." }))
            }
            2 => ("colon", whole.replacen(style.colon(), " ", 1)),
            3 => ("value", whole.replacen(style.comma(), &format!("{} :", style.comma()), 1)),
            _ => ("comma", whole.replacen(style.comma(), ",, ,", 1)),
        };
        let [open, close] = bare_tags(protocol);
        let thoughts = if protocol == "ticket" { dice.pick(&["<thoughts>a</thoughts>\n", ""]) } else { "" };
        let between = dice.pick(&["\n", "", "\n\n", "\nAgain.\n"]);
        let text = format!("{thoughts}{open}{broken}{close}{between}{open}{}{close}", second.payload(style));
        Case::never(label, protocol, text)
    });
}
