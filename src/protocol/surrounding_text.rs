//! The text around a payload: which of it is structure, which is dropped with a record, and which must not be dropped.

use super::around::{bracket_of_words, has_other_tokens, member, more_of_it};
use super::repair_notes::RepairNotes;
use crate::reply::envelope::closings;
use crate::reply::tag::{Match, Tag, special_token};
use crate::reply::{BoxedViolation, Code, RepairCode, RepairPolicy, Span, Violation};

/// Words with a colon that begin a line which only the program or the user may write: a model that continues with one has
/// invented it.
const INVENTED: [&str; 6] = ["observation", "user", "human", "system", "tool result", "result"];
/// Other beginnings of such lines.
const INVENTED_OPENINGS: [&str; 2] = ["tool_execution_result", "<observation>"];
/// Roles that stand alone on a line after a control token.
const ROLES: [&str; 6] = ["user", "human", "system", "tool", "ipython", "observation"];
/// Marks of Markdown that a line may begin with, and that may stand around its first word.
const MARKS: [char; 8] = ['*', '_', '#', '>', '-', '`', ' ', '\t'];

/// Notes what stands before a payload. The spans are plain text, in order; the payload begins where the last one ends.
/// Returns whether a fence opens right before it.
pub(crate) fn leading(text: &str, pieces: &[Span], notes: &mut RepairNotes) -> Result<bool, BoxedViolation> {
    let mut fenced = false;
    for (index, piece) in pieces.iter().enumerate() {
        let mut rest = piece.of(text);
        let mut start = piece.start;
        if start == 0
            && let Some(after) = rest.strip_prefix('\u{feff}')
        {
            notes.note(RepairCode::BomStripped, Span::new(0, rest.len() - after.len()))?;
            start += rest.len() - after.len();
            rest = after;
        }
        if index + 1 == pieces.len()
            && let Some(fence) = fence_before(rest)
        {
            notes.note(RepairCode::FenceStripped, Span::new(start + fence, piece.end))?;
            rest = rest.get(..fence).unwrap_or("");
            fenced = true;
        }
        let (kept, tokens) = without_tokens(rest);
        if let Some(token) = tokens {
            notes.note(RepairCode::SpecialTokenStripped, shifted(token, start))?;
        }
        if let Some(prose) = kept {
            notes.note(RepairCode::ProseStripped, shifted(prose, start))?;
        }
    }
    Ok(fenced)
}

/// Whether the pieces of text before a payload hold nothing but blanks, control tokens and the opening of its fence.
pub(crate) fn stands_first(text: &str, pieces: &[Span]) -> bool {
    if pieces.iter().all(|piece| piece.of(text).trim().is_empty()) {
        return true;
    }
    let mut notes = RepairNotes::new(RepairPolicy::Default);
    leading(text, pieces, &mut notes).is_ok()
        && notes.first(RepairCode::ProseStripped).is_none()
        && !notes
            .all()
            .iter()
            .any(|repair| repair.code == RepairCode::SpecialTokenStripped && has_other_tokens(repair.span.of(text)))
}

pub(crate) fn shifted(span: Span, by: usize) -> Span {
    Span::new(span.start + by, span.end + by)
}

/// Where in `before` the fence begins that opens right before the payload: backticks or tildes, and perhaps a word.
pub(crate) fn fence_before(before: &str) -> Option<usize> {
    let trimmed = before.trim_end();
    let word = trimmed.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '.'));
    if trimmed.len() - word.len() > 20 {
        return None;
    }
    let word = word.trim_end_matches([' ', '\t']);
    let start = word.trim_end_matches(['`', '~']);
    let run = word.get(start.len()..).unwrap_or("");
    (run.starts_with('`') || run.len() >= 3).then_some(start.len())
}

/// What is left of `text` without blanks and control tokens at both ends, and the place of the tokens.
pub(crate) fn without_tokens(text: &str) -> (Option<Span>, Option<Span>) {
    let mut tokens: Option<Span> = None;
    let mut start = 0;
    loop {
        let rest = text.get(start..).unwrap_or("");
        start = text.len() - rest.trim_start_matches(blank).len();
        match special_token(text.get(start..).unwrap_or("")) {
            Some(length) => {
                let from = tokens.map_or(start, |span| span.start);
                start += length;
                tokens = Some(Span::new(from, start));
            }
            None => break,
        }
    }
    let mut end = text.len().max(start);
    loop {
        let rest = text.get(start..end).unwrap_or("");
        end = start + rest.trim_end_matches(blank).len();
        let rest = text.get(start..end).unwrap_or("");
        let tail = rest.char_indices().rev().take(60).find(|&(at, c)| {
            matches!(c, '<' | '[') && special_token(rest.get(at..).unwrap_or("")) == Some(rest.len() - at)
        });
        match tail {
            Some((at, _)) => {
                tokens = Some(Span::new(
                    tokens.map_or(start + at, |span| span.start.min(start + at)),
                    tokens.map_or(end, |span| span.end.max(end)),
                ));
                end = start + at;
            }
            None => break,
        }
    }
    ((end > start).then(|| Span::new(start, end)), tokens)
}

fn blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}')
}

/// `text` without blanks and control tokens at its ends, and the place of the tokens; for text that is an answer.
pub(crate) fn answer(text: &str) -> (Span, Option<Span>) {
    let trimmed = text.trim_start();
    let start = text.len() - trimmed.len();
    let (kept, tokens) = without_tokens(text);
    let tokens = tokens.filter(|span| span.start >= kept.map_or(0, |kept| kept.end));
    let end = tokens.map_or(text.len(), |span| span.start);
    let end = text.get(..end).unwrap_or(text).trim_end().len();
    (Span::new(start, end.max(start)), tokens)
}

/// Notes what stands after a payload: surplus closing brackets, the end of its fence, control tokens, and text that is
/// dropped. Pieces of JSON that would have to be dropped or moved are a violation. The first span begins where the
/// payload ends. Returns the text that was dropped.
pub(crate) fn trailing(
    text: &str,
    pieces: &[Span],
    fenced: bool,
    notes: &mut RepairNotes,
) -> Result<Vec<Span>, BoxedViolation> {
    let mut dropped = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let mut start = after_closers(text, *piece, notes)?;
        let mut rest = text.get(start..piece.end).unwrap_or("");
        let between = index + 1 < pieces.len();
        if between && let Some(fence) = fence_before(rest) {
            // The fence of the copy that follows.
            rest = rest.get(..fence).unwrap_or("");
        }
        if fenced || index > 0 {
            let trimmed = rest.trim_start_matches(blank);
            let after = trimmed.trim_start_matches(['`', '~']);
            if after.len() < trimmed.len() {
                start += rest.len() - after.len();
                rest = after;
            }
            let inside = rest.trim_start_matches(|c: char| blank(c) || matches!(c, '`' | '~'));
            let inside = inside.strip_prefix("json").map_or(inside, str::trim_start);
            no_fragment(text, Span::new(start + rest.len() - inside.len(), start + rest.len()))?;
        }
        let (kept, tokens) = without_tokens(rest);
        if (kept.is_some() || tokens.is_some())
            && let Some(tag) = orphan_think(rest)
        {
            let message = "expected the reply after the reasoning: got the end of a reasoning block behind it";
            return Err(Box::new(
                Violation::new(Code::OrphanCloseTag, message)
                    .at(shifted(tag, start))
                    .hint("reply once more, without reasoning around it"),
            ));
        }
        if let Some(token) = tokens {
            notes.note(RepairCode::SpecialTokenStripped, shifted(token, start))?;
        }
        if let Some(kept) = kept {
            let place = shifted(kept, start);
            let role = tokens.is_some_and(|token| token.end <= kept.start) && role(place.of(text));
            let code = if role || invented(place.of(text)) {
                RepairCode::HallucinatedObservation
            } else {
                RepairCode::TrailingTextDropped
            };
            notes.note(code, place)?;
            dropped.push(place);
        }
    }
    Ok(dropped)
}

/// Whether the text begins with a line that only the program or the user may write.
pub(crate) fn invents(text: &str) -> bool {
    text.lines().next().is_some_and(invented)
}

/// Where the first line of the text begins that only the program may write, with the result of a call.
pub(crate) fn invented_result(text: &str) -> Option<usize> {
    let mut at = 0;
    text.split_inclusive('\n').find_map(|line| {
        let start = at;
        at += line.len();
        let small = line.trim_start().get(..24).unwrap_or(line.trim_start()).to_ascii_lowercase();
        let tagged = || ["<tool_re", "<tool_out", "<function_re", "<|tool_re"].iter().any(|tag| small.starts_with(tag));
        let result = || ["observation", "tool_exec", "tool result"].iter().any(|word| small.contains(word));
        (tagged() || result() && invented(line)).then_some(start)
    })
}

/// Whether a line of the text begins like one that only the program or the user may write.
fn invented(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start_matches(MARKS).chars().take(24).collect::<String>().to_ascii_lowercase();
        let word =
            |word: &&str| line.strip_prefix(*word).is_some_and(|rest| rest.trim_start_matches(MARKS).starts_with(':'));
        INVENTED.iter().any(word) || INVENTED_OPENINGS.iter().any(|opening| line.starts_with(opening))
    })
}

/// Whether the text begins with a role alone on its line.
fn role(text: &str) -> bool {
    let line = text.lines().next().unwrap_or("").trim();
    ROLES.iter().any(|role| line.eq_ignore_ascii_case(role))
}

/// The end of a reasoning block that never began: what stands before it may be rehearsal.
fn orphan_think(text: &str) -> Option<Span> {
    let place = |(start, end): (&Tag, &Tag)| {
        let first = [end.first().to_ascii_lowercase(), end.first().to_ascii_uppercase()];
        let at = memchr::memchr2_iter(first[0], first[1], text.as_bytes());
        let mut found = at.filter_map(|at| match end.at(text.get(at..)?, true) {
            Match::Yes { length, .. } => Some(Span::new(at, at + length)),
            _ => None,
        });
        let span = found.next()?;
        let begun = start.literal().trim_end_matches('>').to_ascii_lowercase();
        let opened = text.get(..span.start)?.to_ascii_lowercase().contains(&begun);
        (!opened).then_some(span)
    };
    closings().filter_map(place).min_by_key(|span| span.start)
}

/// Passes surplus closing brackets, and refuses members that follow the closed payload.
pub(crate) fn after_closers(text: &str, piece: Span, notes: &mut RepairNotes) -> Result<usize, BoxedViolation> {
    let rest = piece.of(text);
    let after = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ']' | '}'));
    let run = rest.get(..rest.len() - after.len()).unwrap_or("");
    let start = piece.end - after.len();
    if let (Some(first), Some(last)) = (run.find([']', '}']), run.rfind([']', '}'])) {
        notes.note(RepairCode::ExtraClosers, Span::new(piece.start + first, piece.start + last + 1))?;
    }
    // A whole piece of JSON on a line of its own is text like any other; one that is stuck to the payload is a part of it.
    let stuck = start == piece.start && text.get(..start).is_some_and(|before| before.ends_with(['}', ']']));
    if stuck && begins_json(after) {
        return Err(Box::new(more_of_it(Span::new(start, start + 1))));
    }
    no_fragment(text, Span::new(start, piece.end))?;
    Ok(start)
}

/// Whether an object, or an array of something, begins here.
fn begins_json(text: &str) -> bool {
    let inside = text.strip_prefix(['{', '[']).map_or("", str::trim_start);
    inside.starts_with(['"', '{', '[']) || text.starts_with('[') && inside.starts_with(|c: char| c.is_ascii_digit())
}

/// Refuses members and elements at the beginning of a piece of text.
fn no_fragment(text: &str, piece: Span) -> Result<(), BoxedViolation> {
    match member(piece.of(text)) {
        Some(length) => Err(Box::new(more_of_it(Span::new(piece.start, piece.start + length)))),
        None => Ok(()),
    }
}

/// Refuses repairs that are certain one by one, but not together: a surplus closing bracket shows that another one stands
/// too early, so that what seems to lie outside may belong inside.
pub(crate) fn certain(text: &str, notes: &RepairNotes) -> Result<(), BoxedViolation> {
    if let Some(bracket) = bracket_of_words(text, notes) {
        let message = "expected the move alone: got a bracket around it that words stand in front of";
        return Err(Box::new(
            Violation::new(Code::QuotedMove, message)
                .at(bracket)
                .hint("write the move on lines of its own, without brackets or words around it"),
        ));
    }
    let Some(closer) = notes.first(RepairCode::ExtraClosers) else { return Ok(()) };
    if let Some(key) = notes.first(RepairCode::UnknownKeyDropped) {
        let message = "expected only the keys of the move: got one more, and a closing bracket too many";
        return Err(Box::new(
            Violation::new(Code::ExtraData, message)
                .at(key)
                .related(closer, "the surplus bracket")
                .hint("put every member inside the object it belongs to"),
        ));
    }
    let open = |prose: Span| {
        let count = |brackets: [char; 2]| prose.of(text).matches(brackets).count();
        count(['{', '[']) > count(['}', ']'])
    };
    if let Some(prose) = notes.first(RepairCode::ProseStripped).filter(|prose| open(*prose)) {
        let message = "expected the object alone: got something around it that is broken";
        return Err(Box::new(
            Violation::new(Code::UnbalancedBrackets, message)
                .at(closer)
                .related(prose, "what begins before it")
                .hint("reply with the object alone, without a wrapper"),
        ));
    }
    Ok(())
}
