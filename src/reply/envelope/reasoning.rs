//! The start and end marks of models' reasoning: one table, with a row for each pair.

use crate::reply::tag::{Match, Tag};
use std::sync::LazyLock;

/// One pair of reasoning marks.
struct Row {
    /// How it begins; a name stands for the tag `<name>`.
    start: Start,
    /// How it ends; empty for a mark without content, and for a tag that ends as it begins.
    ends: &'static [&'static str],
    /// Texts that follow it and end it too, without being a part of it.
    until: &'static [&'static str],
    /// Its ends alone prove that the text before them was reasoning, even without a start mark.
    telling: bool,
}

#[derive(Clone, Copy)]
enum Start {
    /// `<name>`, up to `</name>`.
    Name(&'static str),
    /// This text, anywhere in a reply.
    Mark(&'static str),
    /// These words at the beginning of a reply. They are ordinary words: without their end they are text (chatty).
    Words(&'static str),
    /// The rest of a channel's header at the beginning of a reply, after a server has removed its control tokens.
    Stripped(&'static str),
    /// The same before a blank, so that it could also be a word of prose.
    StrippedApart(&'static str),
}

const fn name(name: &'static str, telling: bool) -> Row {
    Row { start: Start::Name(name), ends: &[], until: &[], telling }
}

const fn marks(start: &'static str, ends: &'static [&'static str]) -> Row {
    Row { start: Start::Mark(start), ends, until: &[], telling: true }
}

const fn channel(start: &'static str) -> Row {
    let ends = &["<|end|>", "<|start|>assistant", "<|channel|>final<|message|>"];
    Row { start: Start::Mark(start), ends, until: &[], telling: false }
}

const fn words(start: &'static str, ends: &'static [&'static str], telling: bool) -> Row {
    Row { start: Start::Words(start), ends, until: &[], telling }
}

const fn stripped(start: Start) -> Row {
    Row { start, ends: &["assistantfinal"], until: &["assistantcommentary"], telling: true }
}

/// A mark that only says that the reply proper begins. It is set aside like reasoning without content.
const fn header(start: Start) -> Row {
    Row { start, ends: &[], until: &[], telling: false }
}

/// `<details>` is reasoning of chat interfaces, and in an answer it is HTML.
pub(crate) const DETAILS: &str = "details";
/// The name of the rows that only count if plain text can't be an answer.
pub(crate) const LOOSE: &str = "loose";

const GRANITE: &[&str] = &["Here is my response:", "Here's my response:"];
const APRIEL: &[&str] = &["[BEGIN FINAL RESPONSE]"];

/// The table. If two rows have a common beginning, the longer one comes first.
const ROWS: &[Row] = &[
    // DeepSeek, Qwen, GLM, Kimi K2, MiniMax, Nemotron, Olmo, Ernie, Hunyuan, Step and most others.
    name("think", true),
    // Claude, Apriel 1.5.
    name("thinking", true),
    name("antThinking", true),
    // Exaone Deep.
    name("thought", false),
    name("thoughts", false),
    // Prompts that ask for reasoning.
    name("reasoning", false),
    name("analysis", false),
    name("scratchpad", false),
    name("reflection", false),
    // Chat interfaces that show reasoning folded.
    name(DETAILS, false),
    Row { telling: false, ..marks("<details type=\"reasoning\"", &["</details>"]) },
    // Seed-OSS.
    name("seed:think", true),
    // LongCat.
    name("longcat_think", true),
    // MiniMax M3.
    name("mm:think", true),
    // Magistral.
    marks("[THINK]", &["[/THINK]"]),
    // Kimi-VL.
    marks("◁think▷", &["◁/think▷"]),
    // Command A.
    marks("<|START_THINKING|>", &["<|END_THINKING|>"]),
    header(Start::Mark("<|START_RESPONSE|>")),
    header(Start::Mark("<|START_TEXT|>")),
    // OpenThinker.
    marks("<|begin_of_thought|>", &["<|end_of_thought|>"]),
    header(Start::Mark("<|begin_of_solution|>")),
    // Apertus.
    marks("<|inner_prefix|>", &["<|inner_suffix|>"]),
    marks("<|think|>", &["<|/think|>"]),
    marks("<|thinking|>", &["<|/thinking|>"]),
    // Gemma 4.
    marks("<|channel>thought", &["<channel|>"]),
    marks("<|channel>", &["<channel|>"]),
    // MedGemma. Most servers leak its marks.
    marks("<unused94>thought", &["<unused95>"]),
    marks("<unused94>", &["<unused95>"]),
    // Pangu.
    marks("[unused16]", &["[unused17]"]),
    // Granite 3.2.
    words("Here is my thought process:", GRANITE, false),
    words("Here's my thought process:", GRANITE, false),
    // Apriel.
    words("Here are my reasoning steps:", APRIEL, true),
    header(Start::Words("[BEGIN FINAL RESPONSE]")),
    // gpt-oss.
    channel("<|channel|>analysis<|message|>"),
    channel("<|start|>assistant<|channel|>analysis<|message|>"),
    header(Start::Mark("<|start|>assistant<|channel|>final<|message|>")),
    header(Start::Mark("<|channel|>final<|message|>")),
    header(Start::Mark("<|start|>assistant<|channel|>commentary<|message|>")),
    header(Start::Mark("<|channel|>commentary<|message|>")),
    // gpt-oss behind a server that removes control tokens.
    stripped(Start::Stripped("analysis")),
    stripped(Start::Stripped("assistantanalysis")),
    stripped(Start::StrippedApart("analysis")),
    header(Start::Stripped("assistantfinal")),
];

/// How one kind of reasoning begins and ends; without an end it is a mark alone.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    /// The name of its tag, if it has one.
    pub(super) name: &'static str,
    pub(super) start: Tag,
    /// Each end, and whether it is a part of the reasoning.
    pub(super) ends: Vec<(Tag, bool)>,
    /// Its ends are used for reasoning only; names such as "thought" are also used for other tags.
    telling: bool,
    place: Place,
}

/// The positions at which a kind counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Anywhere,
    /// At the beginning of a reply.
    First,
    /// There, with other text right behind it.
    FirstGlued,
    /// There, before a blank.
    FirstApart,
}

impl Kind {
    fn new(row: &Row) -> Self {
        let (name, start, ends, place) = match row.start {
            Start::Name(name) => (name, Tag::open(name), vec![(Tag::close(name), true)], Place::Anywhere),
            Start::Mark(mark) => ("", Tag::new(mark), Vec::new(), Place::Anywhere),
            Start::Words(words) => ("", Tag::new(words), Vec::new(), Place::First),
            Start::Stripped(word) => ("", Tag::new(word), Vec::new(), Place::FirstGlued),
            Start::StrippedApart(word) => (LOOSE, Tag::new(word), Vec::new(), Place::FirstApart),
        };
        let mut ends = ends;
        ends.extend(row.ends.iter().map(|end| (Tag::new(*end), true)));
        ends.extend(row.until.iter().map(|end| (Tag::new(*end), false)));
        Self { name, start, ends, telling: row.telling, place }
    }

    /// Reasoning between marks that a program has added.
    pub(super) fn added(start: &str, end: &str) -> Self {
        let ends = vec![(Tag::new(end), true)];
        Self { name: "", start: Tag::new(start), ends, telling: false, place: Place::Anywhere }
    }

    /// Whether it is a mark anywhere in a reply.
    pub(super) fn is_anywhere(&self) -> bool {
        self.place == Place::Anywhere
    }

    /// Whether it begins with ordinary words.
    pub(super) fn is_words(&self) -> bool {
        self.place == Place::First && !self.ends.is_empty()
    }

    /// Whether it begins here.
    pub(super) fn begins(&self, rest: &str, end: bool) -> Match {
        let found = self.start.at(rest, end);
        let Match::Yes { length, exact } = found else { return found };
        if matches!(self.place, Place::Anywhere | Place::First) {
            return found;
        }
        let next = rest.get(length..).and_then(|after| after.chars().next());
        let counts = match (next, self.place) {
            (None, _) if !end => return Match::Partial,
            (Some(next), Place::FirstApart) => next.is_whitespace(),
            (Some(next), _) => next.is_alphanumeric() || matches!(next, '{' | '[' | '<' | '"' | '`' | '\'' | '*' | '#'),
            (None, _) => false,
        };
        if exact && counts { found } else { Match::No }
    }
}

/// The known kinds, made only once, because every reply has its own envelope.
pub(super) static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| ROWS.iter().map(Kind::new).collect());

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

/// The bytes that the kinds begin with that are marks anywhere: none of them is a letter, so most text is passed over.
pub(super) static FIRSTS: LazyLock<Bytes> = LazyLock::new(|| {
    let mut firsts = Bytes::default();
    KINDS.iter().filter(|kind| kind.is_anywhere()).for_each(|kind| firsts.insert_letter(kind.start.first()));
    firsts
});

/// The bytes that the kinds begin with that are marks at the beginning of a reply alone.
pub(super) static LEADS: LazyLock<Bytes> = LazyLock::new(|| {
    let mut firsts = Bytes::default();
    KINDS.iter().filter(|kind| !kind.is_anywhere()).for_each(|kind| firsts.insert_letter(kind.start.first()));
    firsts
});

/// The start and end marks of reasoning, for kinds with an end that proves reasoning.
pub(crate) fn reasoning_ends() -> impl Iterator<Item = (&'static Tag, &'static Tag)> {
    let telling = KINDS.iter().filter(|kind| kind.telling);
    telling.flat_map(|kind| kind.ends.iter().filter(|(_, part)| *part).map(|(end, _)| (&kind.start, end)))
}

/// The ends after a move that prove that it stood in reasoning: end tags of any name, and the beginnings of an answer.
pub(crate) fn closings() -> impl Iterator<Item = (&'static Tag, &'static Tag)> {
    let all = KINDS.iter().flat_map(|kind| kind.ends.iter().map(move |(end, part)| (kind, end, *part)));
    let says = |kind: &Kind, end: &Tag, part: bool| {
        part && (kind.telling || end.literal().starts_with("</")) || end.literal().contains("final")
    };
    let ends = all.filter(move |(kind, end, part)| says(kind, end, *part)).map(|(kind, end, _)| (&kind.start, end));
    // A header of commentary begins calls as well.
    let begins =
        |kind: &&Kind| kind.ends.is_empty() && kind.is_anywhere() && !kind.start.literal().contains("commentary");
    ends.chain(KINDS.iter().filter(begins).map(|kind| (&kind.start, &kind.start)))
}

/// Further beginnings of names of sections in which a model thinks, in addition to the table.
const STEMS: [&str; 15] = [
    "analy",
    "brainstorm",
    "cot",
    "deliberat",
    "draft",
    "inner",
    "monolog",
    "mull",
    "musing",
    "plan",
    "ponder",
    "reason",
    "reflect",
    "rehears",
    "scratch",
];

/// The names of tags of reasoning in the table, without those that mean other things as well.
fn names() -> impl Iterator<Item = &'static str> {
    let names = ROWS.iter().filter_map(|row| if let Start::Name(name) = row.start { Some(name) } else { None });
    names.filter(|name| *name != DETAILS && name.bytes().all(|byte| byte.is_ascii_alphabetic()))
}

/// Whether a title is the name of reasoning.
pub(crate) fn names_reasoning(title: &str) -> bool {
    names().any(|name| name.eq_ignore_ascii_case(title))
}

/// Whether a text in small letters begins with a name of reasoning.
pub(crate) fn begins_reasoning(text: &str) -> bool {
    names().any(|name| text.starts_with(name))
}

/// Whether the name of a section has a word that says that a model thinks in it.
pub(crate) fn has_name_of_reasoning(name: &str) -> bool {
    let small = name.to_lowercase();
    let mut words = small.split(|c: char| !c.is_alphanumeric());
    words.any(|word| begins_reasoning(word) || STEMS.iter().any(|stem| word.starts_with(stem)))
}

/// The words that end reasoning which begins with words.
pub(crate) fn word_ends() -> impl Iterator<Item = &'static str> {
    ROWS.iter().filter(|row| matches!(row.start, Start::Words(_))).flat_map(|row| row.ends.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::{KINDS, Match, ROWS};

    #[test]
    fn no_row_hides_a_longer_one() {
        for (at, kind) in KINDS.iter().enumerate() {
            for later in KINDS.iter().skip(at + 1) {
                let hides = kind.begins(&format!("{}x", later.start.literal()), true) != Match::No;
                let same = kind.start.literal() == later.start.literal() && kind.place != later.place;
                assert!(!hides || same, "{} hides {}", kind.start.literal(), later.start.literal());
            }
        }
    }

    #[test]
    fn each_row_is_a_kind() {
        assert_eq!(ROWS.len(), KINDS.len());
    }
}
