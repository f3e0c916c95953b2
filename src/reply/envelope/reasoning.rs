//! How the reasoning of models begins and ends.

use crate::reply::tag::Tag;
use std::sync::LazyLock;

/// The names of tags whose content is reasoning.
const REASONING: [&str; 8] =
    ["think", "thinking", "thought", "thoughts", "reasoning", "analysis", "scratchpad", "reflection"];

/// Marks of models whose reasoning stands in none of these tags: Magistral, Kimi, Command A, `OpenThinker`, Apertus, gpt-oss.
const REASONING_MARKS: [(&str, &[&str]); 9] = [
    ("[THINK]", &["[/THINK]"]),
    ("◁think▷", &["◁/think▷"]),
    ("<|START_THINKING|>", &["<|END_THINKING|>"]),
    ("<|begin_of_thought|>", &["<|end_of_thought|>"]),
    ("<|inner_prefix|>", &["<|inner_suffix|>"]),
    ("<|think|>", &["<|/think|>"]),
    ("<|thinking|>", &["<|/thinking|>"]),
    ("<|channel|>analysis<|message|>", CHANNEL_ENDS),
    ("<|start|>assistant<|channel|>analysis<|message|>", CHANNEL_ENDS),
];
const CHANNEL_ENDS: &[&str] = &["<|end|>", "<|start|>assistant", "<|channel|>final<|message|>"];
/// What such models write before the reply proper. It is set aside like a reasoning block without content.
const HEADERS: [&str; 6] = [
    "<|start|>assistant<|channel|>final<|message|>",
    "<|channel|>final<|message|>",
    "<|start|>assistant<|channel|>commentary<|message|>",
    "<|channel|>commentary<|message|>",
    "<|START_RESPONSE|>",
    "<|begin_of_solution|>",
];

/// How one kind of reasoning begins and ends; without an end it is a mark alone.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    /// The name of its tag, where it has one.
    pub(super) name: &'static str,
    pub(super) start: Tag,
    pub(super) ends: Vec<Tag>,
    /// Its ends are those of reasoning alone; names such as "thought" are also those of other tags.
    pub(super) telling: bool,
}

/// The kinds that are known, made once: every reply has an envelope of its own.
pub(super) static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let named = REASONING.iter().chain(&["seed:think"]);
    let named = named.map(|name| Kind {
        name,
        start: Tag::open(name),
        ends: vec![Tag::close(name)],
        telling: name.contains("think"),
    });
    let marks = REASONING_MARKS.iter().map(|(start, ends)| Kind {
        name: "",
        start: Tag::new(*start),
        ends: ends.iter().map(|end| Tag::new(*end)).collect(),
        telling: *ends != CHANNEL_ENDS,
    });
    let headers =
        HEADERS.iter().map(|header| Kind { name: "", start: Tag::new(*header), ends: Vec::new(), telling: false });
    named.chain(marks).chain(headers).collect()
});

/// A set of bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bytes([u64; 4]);

impl Bytes {
    /// Adds a byte, in upper and in lower case.
    pub(super) fn insert_letter(&mut self, byte: u8) {
        for byte in [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()] {
            if let Some(word) = self.0.get_mut(usize::from(byte >> 6)) {
                *word |= 1 << (byte & 63);
            }
        }
    }

    pub(super) fn contains(self, byte: u8) -> bool {
        self.0.get(usize::from(byte >> 6)).is_some_and(|word| word & (1 << (byte & 63)) != 0)
    }
}

/// The bytes that the kinds begin with.
pub(super) static FIRSTS: LazyLock<Bytes> = LazyLock::new(|| {
    let mut firsts = Bytes::default();
    KINDS.iter().for_each(|kind| firsts.insert_letter(kind.start.first()));
    firsts
});

/// How the reasoning of models begins and ends, where its end says by itself that it was reasoning.
pub(crate) fn reasoning_ends() -> impl Iterator<Item = (&'static Tag, &'static Tag)> {
    KINDS.iter().filter(|kind| kind.telling).flat_map(|kind| kind.ends.iter().map(|end| (&kind.start, end)))
}
