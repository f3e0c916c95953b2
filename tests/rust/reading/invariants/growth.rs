//! Time grows with the text: a beginning, a piece that is repeated, an end.

use super::{Input, Way};
use callslip::protocol::FinishReason;
use callslip::reply::json::{JsonReader, Settings};
use callslip::reply::{ReadLimits, RepairPolicy};
use std::time::{Duration, Instant};

/// What separates beginning, piece and end in a seed.
const SEPARATOR: u8 = b'\x1f';
/// As much of the text as is used: a long piece is seldom repeated.
const LONGEST: usize = 256;
/// Lengths that raise a suspicion quickly, and lengths that prove it.
const QUICK: [usize; 2] = [2_000, 16_000];
const SURE: [usize; 2] = [12_000, 96_000];

pub(super) fn check(input: Input<'_>) {
    let parts: Vec<_> = input.text[..input.text.len().min(LONGEST)].split(|byte| *byte == SEPARATOR).collect();
    let (head, piece, tail) = match parts.as_slice() {
        [head, piece, tail, ..] => (*head, *piece, *tail),
        [head, piece] => (*head, *piece, &b""[..]),
        [piece] => (&b""[..], *piece, &b""[..]),
        [] => return,
    };
    if piece.is_empty() {
        return;
    }
    let make = |length: usize| [head, &piece.repeat(length / piece.len()), tail].concat();
    let protocol = ["react", "chatty", "ticket", "json"][usize::from(input.options & 3)];
    let size = if input.option(2) { usize::MAX } else { input.sizes[0] };
    let once = reader(protocol, size, input.option(3));
    if is_suspicious(&once, &make, QUICK) {
        let times = superlinear(&once, &make, SURE);
        assert!(times.is_none(), "{protocol}, chunks of {size}: {SURE:?} bytes take {times:?}");
    }
}

/// Whether a text takes so much longer than one of an eighth of its length that both should be measured well.
pub(crate) fn is_suspicious(
    once: &dyn Fn(&[u8]) -> Duration,
    make: &dyn Fn(usize) -> Vec<u8>,
    lengths: [usize; 2],
) -> bool {
    let [short, long] = lengths.map(make);
    let short = once(&short).min(once(&short));
    let long = once(&long);
    long > Duration::from_millis(2) && long > short * 16
}

type Reader = Box<dyn Fn(&[u8]) -> Duration>;

/// Reads a text once, and says how long it took.
pub(crate) fn reader(protocol: &str, size: usize, lenient: bool) -> Reader {
    if protocol == "json" {
        return Box::new(move |text| {
            let text = String::from_utf8_lossy(text);
            let mut settings = Settings::new(RepairPolicy::Default, ReadLimits::default());
            settings.records = true;
            let start = Instant::now();
            let mut machine = JsonReader::new(settings, 0);
            for (end, _) in text.char_indices().skip(1).step_by(size) {
                machine.run(&text[..end], false);
            }
            machine.run(&text, true);
            start.elapsed()
        });
    }
    let mut way = Way::plain(protocol);
    if lenient {
        way.options.repairs = RepairPolicy::Lenient;
    }
    Box::new(move |text| {
        let mut decoder = way.protocol.decoder(way.options);
        let mut deltas = Vec::new();
        let start = Instant::now();
        for chunk in text.chunks(size) {
            decoder.push(chunk, &mut deltas);
            deltas.clear();
        }
        decoder.finish(FinishReason::Stop);
        start.elapsed()
    })
}

/// How long it takes to read a short text eight times, and one of eight times its length once, if that is far from the
/// same: a square would take eight times as long. Both last alike, so that other work on the machine disturbs both; each
/// is the faster of two, and a difference is forgiven twice.
pub(crate) fn superlinear(
    once: &dyn Fn(&[u8]) -> Duration,
    make: &dyn Fn(usize) -> Vec<u8>,
    lengths: [usize; 2],
) -> Option<[Duration; 2]> {
    let texts = lengths.map(make);
    let fastest = |text: &[u8], times: usize| {
        let all = (0..2).map(|_| (0..times).map(|_| once(text)).sum());
        all.min().unwrap_or(Duration::ZERO)
    };
    let mut slow = None;
    for _ in 0..3 {
        let long = fastest(&texts[1], 1);
        if long < Duration::from_millis(8) {
            return None;
        }
        let short = fastest(&texts[0], 8);
        slow = (long > short * 4).then_some([short, long]);
        slow?;
    }
    slow
}
