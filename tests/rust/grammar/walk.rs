//! Random walks through a grammar: replies that an engine could be made to write, without a model; and their reading.

use callslip::protocol::{FinishReason, Move, Protocol, ReadOptions, Reply};
use callslip::reply::{Code, Repair, RepairCode};
use callslip::tool::{Effect, ToolKind, ToolSet, ToolSpec};
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::Value as Json;
use std::sync::{Arc, OnceLock};
use toktrie::{ApproximateTokEnv, SimpleVob};

/// Bytes after which a walk is given up: no language of the tests has a longer reply.
const LONGEST: usize = 60_000;

/// The seed of the generators here, which is also that of proptest.
pub(crate) fn seed() -> u64 {
    std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7)
}

/// A small generator: the same replies for the same seed, everywhere.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound.max(1)
    }
}

fn factory() -> &'static ParserFactory {
    static FACTORY: OnceLock<ParserFactory> = OnceLock::new();
    FACTORY.get_or_init(|| {
        let mut factory =
            ParserFactory::new(&ApproximateTokEnv::single_byte_env(), toktrie::InferenceCapabilities::default(), &[])
                .unwrap();
        factory.quiet();
        factory
    })
}

pub(crate) fn matcher(lark: &str) -> Matcher {
    let parser = factory().create_parser(TopLevelGrammar::from_lark(lark.to_owned()));
    let mut matcher = Matcher::new(parser);
    assert!(!matcher.is_error(), "{:?}\n{lark}", matcher.get_error());
    assert_eq!(matcher.grammar_warnings(), Vec::<String>::new(), "{lark}");
    matcher
}

/// Whether the language has exactly this reply.
pub(crate) fn admits(lark: &str, reply: &str) -> bool {
    admitted(lark, reply) == (reply.len(), true)
}

/// How many bytes of the reply the language follows, and whether it may end there.
pub(crate) fn admitted(lark: &str, reply: &str) -> (usize, bool) {
    follows(&matcher(lark), reply)
}

/// The same of the language that a fresh `matcher` is for.
pub(crate) fn follows(matcher: &Matcher, reply: &str) -> (usize, bool) {
    let mut matcher = matcher.deep_clone();
    let tokens: Vec<u32> = reply.bytes().map(u32::from).collect();
    let count = matcher.try_consume_tokens(&tokens).unwrap();
    (count, matcher.is_accepting().unwrap())
}

/// One reply of the language that a fresh `matcher` is for.
pub(crate) fn walk(matcher: &Matcher, random: &mut Random) -> String {
    walk_to(matcher, random, LONGEST).unwrap_or_else(|| panic!("no end"))
}

/// The same; `None` where it has not come to an end within so many bytes.
pub(crate) fn walk_to(matcher: &Matcher, random: &mut Random, longest: usize) -> Option<String> {
    let mut matcher = matcher.deep_clone();
    let end = matcher.tok_env().unwrap().tok_trie().eos_token();
    let mut bytes = Vec::new();
    // Some walks end each string soon, some late.
    let patience = [4, 12, 60][random.below(3)];
    while !matcher.is_stopped() {
        if bytes.len() >= longest {
            return None;
        }
        let mask =
            matcher.compute_mask().unwrap_or_else(|error| panic!("{error}\n{}", String::from_utf8_lossy(&bytes)));
        let Some(byte) = choose(&mask, end, patience, random) else { break };
        matcher.consume_token(u32::from(byte)).unwrap();
        bytes.push(byte);
    }
    assert!(!matcher.is_error(), "{:?}", matcher.get_error());
    Some(String::from_utf8(bytes).unwrap())
}

fn choose(mask: &SimpleVob, end: u32, patience: usize, random: &mut Random) -> Option<u8> {
    let allowed: Vec<u8> = (0..=255_u8).filter(|byte| mask.is_allowed(u32::from(*byte))).collect();
    let may_end = mask.is_allowed(end);
    if allowed.is_empty() || (may_end && random.below(patience) == 0) {
        assert!(may_end, "neither a byte nor the end");
        return None;
    }
    let closing: Vec<u8> = allowed.iter().copied().filter(|byte| b"\"\\\n}]".contains(byte)).collect();
    if !closing.is_empty() && random.below(patience) == 0 {
        return Some(closing[random.below(closing.len())]);
    }
    let plain: Vec<u8> = allowed.iter().copied().filter(u8::is_ascii_graphic).collect();
    if !plain.is_empty() && random.below(8) > 0 {
        return Some(plain[random.below(plain.len())]);
    }
    Some(allowed[random.below(allowed.len())])
}

pub(crate) fn tool(name: &str, parameters: Json) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters,
        effect: Effect::Pure,
        readonly: true,
        kind: ToolKind::Function,
        reconciles: false,
        needs_approval: false,
        checks_approval: false,
        repeatable: false,
        untrusted: false,
        queue: None,
        reads: std::collections::BTreeMap::new(),
        external: None,
        values: std::collections::BTreeMap::new(),
        asks_untrusted: false,
    }
}

fn decoded(protocol: &dyn Protocol, text: &str) -> Reply {
    let mut decoder = protocol.decoder(ReadOptions::default());
    decoder.push(text.as_bytes(), &mut Vec::new());
    decoder.finish(FinishReason::Stop)
}

/// Whether a reply is refused with one of `codes`; any other must be in order.
pub(crate) fn is_refused(protocol: &dyn Protocol, tools: &ToolSet, text: &str, codes: &[Code]) -> bool {
    let reply = decoded(protocol, text);
    // A key that stands twice with one value is read once.
    let twice = reply.repairs.iter().any(|repair| repair.code == RepairCode::DuplicateKeyDropped);
    if twice && codes.contains(&Code::DuplicateKey) || reply.outcome.is_err_and(|fault| codes.contains(&fault.code)) {
        return true;
    }
    read(protocol, tools, text);
    false
}

/// Reads a reply and checks the arguments of its calls.
pub(crate) fn read(protocol: &dyn Protocol, tools: &ToolSet, text: &str) -> Move {
    let reply = decoded(protocol, text);
    let moved = reply.outcome.unwrap_or_else(|violation| panic!("{text}\n{violation:?}"));
    // Only react's arguments are written in another form than the protocol's own: an object needs fewer escapes.
    let known = |repair: &Repair| protocol.name() == "react" && repair.code == RepairCode::ArgsObject;
    assert!(reply.repairs.iter().all(known) && reply.discarded.is_empty(), "{text}\n{:?}", reply.repairs);
    if let Move::Call { calls } = &moved {
        for call in calls {
            // It is known when the call is made whether there is a result of that name.
            if protocol.name() == "chatty" && call.arguments.to_json().contains("\"$call_") {
                continue;
            }
            let found = tools.find(&call.tool, protocol.routes());
            let checked = found.and_then(|found| {
                let mut arguments = Arc::clone(&call.arguments);
                if protocol.routes() {
                    arguments = tools.with_whole_body(found.tool, arguments)?;
                }
                tools.check_call(&found, &arguments, &[])
            });
            let checked = checked.unwrap_or_else(|violation| panic!("{text}\n{violation:?}"));
            assert!(checked.coerced.is_empty(), "{text}\n{:?}", checked.coerced);
        }
    }
    moved
}
