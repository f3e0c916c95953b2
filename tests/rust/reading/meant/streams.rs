//! A streamed reply is read like a whole one (A6). A stream that is stopped early never saw the rest, which is allowed only
//! where nothing but blanks, known reasoning and the protocol's own sections precede the move.

use super::dice::Dice;
use super::moves::{Meant, STYLES, Style};
use super::outcome::{streamed, whole};
use super::pieces::{prose, words};
use super::{PROTOCOLS, Wrong, cases, first_seed};

/// A reply of several pieces.
struct Pieces {
    text: String,
    /// Whether only blanks and known sections precede the first move.
    clean: bool,
    /// Where moves end.
    ends: Vec<usize>,
}

fn pieces(protocol: &'static str, dice: &mut Dice) -> Pieces {
    let mut made = Pieces { text: String::new(), clean: true, ends: Vec::new() };
    let mut last: Option<Meant> = None;
    let style = if dice.one_in(2) { Style::Double } else { dice.pick(&STYLES) };
    for _ in 0..=dice.below(4) {
        let (clean, piece) = match dice.below(16) {
            0 | 1 => (false, prose(dice)),
            2 => (true, format!("<think>\n{}\n</think>", prose(dice))),
            3 => (true, format!("<think>{}</think>", Meant::any(protocol, dice).reply(style))),
            4 => (false, format!("{}\n</think>", prose(dice))),
            5 => (false, format!("<musing>{}</musing>", Meant::any(protocol, dice).reply(style))),
            6 => (false, "\nObservation: 4\n".to_owned()),
            7 => (false, words(dice).to_owned()),
            8 => (true, "```json\n".to_owned()),
            9 => (true, "\n```\n".to_owned()),
            10 => (true, "\n\n".to_owned()),
            11 if last.is_some() => {
                // The same move once more.
                made.text.push_str(&last.as_ref().map_or(String::new(), |meant| meant.reply(style)));
                made.ends.push(made.text.len());
                continue;
            }
            _ => {
                let meant = Meant::any(protocol, dice);
                made.text.push_str(&meant.reply(style));
                made.ends.push(made.text.len());
                last = Some(meant);
                continue;
            }
        };
        made.clean &= clean || !made.ends.is_empty();
        made.text.push_str(&piece);
        made.text.push_str(dice.pick(&["\n", "", " "]));
    }
    if made.ends.is_empty() && dice.one_in(2) {
        made.text.push_str(&Meant::any(protocol, dice).reply(style));
        made.ends.push(made.text.len());
    }
    made
}

#[test]
fn a_streamed_reply_is_read_like_a_whole_one() {
    let mut wrong = Wrong::default();
    let cases = cases() * 10;
    let mut acting = 0;
    for seed in (0..cases as u64).map(|number| first_seed().wrapping_add(number)) {
        let mut dice = Dice::new(seed);
        let protocol = dice.pick(&PROTOCOLS);
        let pieces = pieces(protocol, &mut dice);
        let text = &pieces.text;
        let (all, stream) = (whole(protocol, text), streamed(protocol, text, &mut dice));
        acting += usize::from(all.acts());
        if stream.same(&all) {
            continue;
        }
        let early = |end: &usize| stream == whole(protocol, &text[..*end]);
        if !(pieces.clean && pieces.ends.iter().any(early)) {
            let kind = format!("{protocol}, {}", if pieces.clean { "clean before the move" } else { "text before" });
            wrong.add(kind, seed, text, format!("whole {all:?}: got {stream:?}"));
        }
    }
    assert!(acting * 4 > cases, "expected one reply of four to be executed: got {acting} of {cases}");
    wrong.none(cases);
}
