//! One token sequence, whole or broken, in every quoting style: what is refused as JSON is not executed in another style
//! with other arguments than those that stand there, and what is executed is the same in all of them (A3).

use super::dice::Dice;
use super::moves::{Meant, STYLES, Style, reply};
use super::outcome::{Done, parsed, streamed};
use super::{PROTOCOLS, Wrong, cases, first_seed};
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// A token of JSON.
#[derive(Debug, Clone, PartialEq)]
enum Token {
    Mark(char),
    Key(String),
    Text(String),
    Plain(String),
}

fn tokens(value: &Json, into: &mut Vec<Token>) {
    match value {
        Json::Object(entries) => {
            into.push(Token::Mark('{'));
            for (index, (key, value)) in entries.iter().enumerate() {
                if index > 0 {
                    into.push(Token::Mark(','));
                }
                into.extend([Token::Key(key.clone()), Token::Mark(':')]);
                tokens(value, into);
            }
            into.push(Token::Mark('}'));
        }
        Json::Array(items) => {
            into.push(Token::Mark('['));
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    into.push(Token::Mark(','));
                }
                tokens(item, into);
            }
            into.push(Token::Mark(']'));
        }
        Json::String(text) => into.push(Token::Text(text.clone())),
        other => into.push(Token::Plain(other.to_string())),
    }
}

fn written(tokens: &[Token], style: Style) -> String {
    let mut text = String::new();
    let is_word = |token: &Token| !matches!(token, Token::Mark(_));
    for (at, token) in tokens.iter().enumerate() {
        if is_word(token) && at > 0 && is_word(&tokens[at - 1]) {
            // Two bare words are not one.
            text.push(' ');
        }
        match token {
            Token::Mark(':') => text.push_str(style.colon()),
            Token::Mark(',') => text.push_str(style.comma()),
            Token::Mark(mark) => text.push(*mark),
            Token::Key(key) => text.push_str(&style.key(key)),
            Token::Text(value) => text.push_str(&style.string(value)),
            Token::Plain(value) => text.push_str(value),
        }
    }
    text
}

/// Breaks a sequence at one place or a few.
fn broken(tokens: &mut Vec<Token>, dice: &mut Dice) {
    for _ in 0..dice.below(4) {
        let at = dice.below(tokens.len());
        match dice.below(6) {
            0 => drop(tokens.remove(at)),
            1 => tokens.insert(at, tokens[at].clone()),
            2 => tokens.insert(at, Token::Mark('}')),
            3 => tokens.insert(at, Token::Mark(dice.pick(&['{', ']', '[', ',', ':']))),
            4 => {
                let other = dice.below(tokens.len());
                tokens.swap(at, other);
            }
            _ => {
                // An early closing brace, and the one at the end kept or not.
                let commas: Vec<usize> = (0..tokens.len()).filter(|at| tokens[*at] == Token::Mark(',')).collect();
                if !commas.is_empty() {
                    tokens.insert(dice.pick(&commas), Token::Mark('}'));
                }
            }
        }
        if tokens.is_empty() {
            return;
        }
    }
}

/// The words and numbers of a value, keys included.
fn leaves(value: &Json, into: &mut BTreeSet<String>) {
    match value {
        Json::Object(entries) => {
            for (key, value) in entries {
                into.insert(key.clone());
                leaves(value, into);
            }
        }
        Json::Array(items) => items.iter().for_each(|item| leaves(item, into)),
        Json::String(text) => drop(into.insert(text.clone())),
        other => drop(into.insert(other.to_string())),
    }
}

/// Everything of the sequence but the protocol's own keys and the values beside the arguments.
fn content(tokens: &[Token], meant: &Meant) -> BTreeSet<String> {
    let (before, key) = meant.parts();
    let mut own = BTreeSet::from([key.to_owned()]);
    leaves(&Json::Object(before), &mut own);
    let texts = tokens.iter().filter_map(|token| match token {
        Token::Mark(_) => None,
        Token::Key(text) | Token::Text(text) | Token::Plain(text) => Some(text.clone()),
    });
    texts.filter(|text| !own.contains(text)).collect()
}

/// Whether everything that stands there is an argument of the call.
fn is_complete(done: &Done, content: &BTreeSet<String>) -> bool {
    let Done::Calls(calls) = done else { return false };
    let mut found = BTreeSet::new();
    for (_, args) in calls {
        leaves(args, &mut found);
    }
    found.is_superset(content)
}

#[test]
fn a_quoting_style_changes_nothing() {
    let mut wrong = Wrong::default();
    let (mut executed, cases) = (0, cases());
    for seed in (0..cases as u64).map(|number| first_seed().wrapping_add(number)) {
        let mut dice = Dice::new(seed);
        let protocol = dice.pick(&PROTOCOLS);
        let meant = Meant::random(protocol, &mut dice);
        let mut sequence = Vec::new();
        let object = if protocol == "chatty" { Json::Array(vec![meant.object()]) } else { meant.object() };
        tokens(&object, &mut sequence);
        broken(&mut sequence, &mut dice);
        let content = content(&sequence, &meant);
        let json = parsed(protocol, &reply(protocol, &written(&sequence, Style::Double)));
        executed += usize::from(json.acts());
        for style in STYLES {
            if dice.one_in(2) {
                continue;
            }
            let text = reply(protocol, &written(&sequence, style));
            let whole = parsed(protocol, &text);
            let stream = streamed(protocol, &text, &mut dice);
            for (how, done) in [("whole", &whole), ("streamed", &stream)] {
                let stopped_early = how == "streamed" && !whole.acts() && is_complete(done, &BTreeSet::new());
                let right = !done.acts()
                    || json.acts() && *done == json
                    || !json.acts() && is_complete(done, &content)
                    // A stream may be stopped where the object is closed: it never saw what follows.
                    || stopped_early && closes_early(&sequence, &meant, style, done);
                if !right {
                    wrong.add(
                        format!("{protocol} {how}, {style:?}"),
                        seed,
                        &text,
                        format!("as JSON {json:?}: got {done:?}"),
                    );
                }
            }
        }
    }
    assert!(executed * 5 > cases, "expected one sequence of five to be executed as JSON: got {executed} of {cases}");
    wrong.none(cases);
}

/// Whether the sequence has a closed object at its beginning that is this move on its own.
fn closes_early(sequence: &[Token], meant: &Meant, style: Style, done: &Done) -> bool {
    let mut open = 0_i32;
    for (at, token) in sequence.iter().enumerate() {
        match token {
            Token::Mark('{' | '[') => open += 1,
            Token::Mark('}' | ']') => open -= 1,
            _ => {}
        }
        if open <= 0 {
            let head = sequence.get(..=at).unwrap_or_default();
            let (_, key) = meant.parts();
            // Without its arguments a move is not complete where something may follow.
            return head.contains(&Token::Key(key.to_owned()))
                && parsed(meant.protocol, &reply(meant.protocol, &written(head, style))) == *done;
        }
    }
    false
}

#[test]
fn a_whole_move_is_executed_in_every_style() {
    super::check(|dice| {
        let meant = Meant::any(dice.pick(&PROTOCOLS), dice);
        let style = dice.pick(&STYLES);
        super::Case::must(format!("{style:?}"), meant.reply(style), &meant)
    });
}
