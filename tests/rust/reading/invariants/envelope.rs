//! The envelope: the same marks in any chunks, in order, and none where the text was said to be settled.

use super::{Input, lies_inside};
use callslip::reply::Span;
use callslip::reply::buffer::Buffer;
use callslip::reply::envelope::{Envelope, Look, Mark};
use callslip::reply::tag::Tag;

/// Everything that was found.
#[derive(Debug, PartialEq)]
struct Found {
    text: String,
    marks: Vec<Mark>,
    code: Vec<Span>,
    reasoning: Option<Span>,
}

pub(super) fn check(input: Input<'_>) {
    let whole = find(input, &[input.text]);
    for chunks in input.chunkings() {
        assert_eq!(find(input, &chunks), whole, "in chunks, and whole");
    }
    let mut before = 0;
    for mark in &whole.marks {
        let span = place(*mark);
        lies_inside(span, &whole.text);
        assert!(before <= span.start, "{:?}", whole.marks);
        before = span.end;
    }
    for pair in whole.code.windows(2) {
        assert!(pair[0].end <= pair[1].start, "{:?}", whole.code);
    }
    whole.code.iter().chain(&whole.reasoning).for_each(|span| lies_inside(*span, &whole.text));
}

fn place(mark: Mark) -> Span {
    match mark {
        Mark::Bracket(at) => Span::new(at, at + 1),
        Mark::Tag { span, .. } => span,
        Mark::Reasoning { whole, content, .. } => {
            assert!(whole.start <= content.start && content.end <= whole.end);
            whole
        }
    }
}

/// As each protocol uses it; a bracket is passed over as if no payload began there.
fn find(input: Input<'_>, chunks: &[&[u8]]) -> Found {
    let prefilled = input.option(2);
    let tags = |names: &[&str]| names.iter().map(|name| Tag::new(*name)).collect::<Vec<_>>();
    let (mut envelope, look) = match input.options & 3 {
        0 => (Envelope::new(Vec::new(), &[], prefilled), Look { brackets: true, reasoning: true, code: false }),
        1 => {
            let tags = tags(&["<thoughts>", "</thoughts>", "<output>", "</output>"]);
            let envelope = Envelope::new(tags, &["thoughts", "thought"], prefilled);
            (envelope, Look { brackets: input.option(3), reasoning: input.option(3), code: false })
        }
        other => {
            let tags = tags(if other == 2 { &["<tool>", "</tool>"] } else { &["[[GO", "END]]"] });
            (Envelope::new(tags, &[], prefilled), Look { brackets: false, reasoning: true, code: true })
        }
    };
    let mut buffer = Buffer::default();
    let mut marks = Vec::new();
    for chunk in chunks {
        buffer.push(chunk);
        step(&mut envelope, buffer.text(), false, look, &mut marks);
    }
    buffer.close();
    step(&mut envelope, buffer.text(), true, look, &mut marks);
    let code = envelope.code(buffer.text().len());
    Found { text: buffer.into_text(), marks, code, reasoning: envelope.open_reasoning() }
}

fn step(envelope: &mut Envelope, text: &str, end: bool, look: Look, marks: &mut Vec<Mark>) {
    loop {
        let (settled, open) = (envelope.settled(), envelope.open_reasoning());
        let mark = envelope.next(text, end, look);
        lies_inside(Span::at(envelope.settled()), text);
        match mark {
            Some(Mark::Reasoning { content, .. }) => {
                let known = open.map_or(content.start, |open| open.end);
                assert!(known <= content.end, "told up to {known} of the reasoning {content:?} in {text:?}");
            }
            Some(mark) => assert!(settled <= place(mark).start, "settled to {settled}, then {mark:?} in {text:?}"),
            None => return,
        }
        if let Some(Mark::Bracket(at)) = mark {
            envelope.resume(at + 1);
        }
        marks.extend(mark);
    }
}
