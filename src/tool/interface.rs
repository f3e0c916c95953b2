//! The tools in a prompt, in the richest form that fits: whole schemas, a line each with all arguments, names, groups.
//! Where arguments are not shown, two tools of the runtime's own look them up (`look_up.rs`).

use super::describe::truncate;
use super::look_up::{DESCRIBE, SEARCH};
use super::render::{Notes, json_entry, line_entry, list_entry, note_lines};
use super::set::{ToolSet, ToolSetError};
use super::spec::{ToolKind, ToolSpec};
use super::tool_view::{Detail, ToolView, grouped};
use std::borrow::Cow;

/// Tokens that the tools may take in a prompt, at four characters a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget(pub usize);

impl Default for Budget {
    fn default() -> Self {
        Self(8_000)
    }
}

impl Budget {
    const CHARACTERS: usize = 4;

    fn characters(self) -> usize {
        self.0.saturating_mul(Self::CHARACTERS)
    }
}

/// How a protocol shows tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A JSON array of name, description and JSON Schema (chatty).
    Json,
    /// A list with a line for each argument (react).
    List,
    /// A signature for each, with a line for what is said of an argument (chatty, ticket).
    Lines,
    /// The operations of an `OpenAPI` document, called by their routes (ticket).
    Operations,
}

/// The form in which all arguments are shown, where one fits, with what it was made for.
pub(super) type Rendered = ((Layout, Budget), Option<String>);

/// Heading of signatures.
const SIGNATURES: &str = "One tool a line, as name(arguments): an argument with ? may be left out.\n";

/// Characters up to which a document is shown as it is.
const WHOLE: usize = 2_000;

/// Characters of a description next to a name.
const WORDS: usize = 60;

/// Characters of a name or a group in an index.
const NAME: usize = 100;

/// Characters of the line about omitted groups.
const MORE: usize = 30;

/// Examples of a group in an index: as many as fit.
const EXAMPLES: [usize; 6] = [8, 5, 3, 2, 1, 0];

impl ToolSet {
    /// The tools for a prompt.
    pub fn interface(&self, layout: Layout, budget: Budget) -> String {
        let whole = if self.is_crowded() { None } else { self.detailed(layout, budget) };
        let crowded = || crowded(self.unread().as_ref().unwrap_or(self), layout, budget);
        whole.map_or_else(crowded, Cow::into_owned)
    }

    /// These tools and those that look them up, where not all fit into a prompt with their arguments; else `None`.
    /// A tool of the program keeps its name: then ours of that name is left out.
    ///
    /// # Errors
    /// As [`ToolSet::new`].
    pub fn with_look_up(&self, layout: Layout, budget: Budget) -> Result<Option<Self>, ToolSetError> {
        if self.is_crowded() || self.detailed(layout, budget).is_some() {
            return Ok(None);
        }
        let taken = |tool: &ToolSpec| {
            let named = |shown: ToolView<'_>| {
                shown.name() == tool.name
                    || shown.id() == Some(&tool.name)
                    || shown.label(true) == format!("POST /{}", tool.name)
            };
            self.shown().any(named)
        };
        let free: Vec<ToolSpec> = super::look_up::specs().into_iter().filter(|tool| !taken(tool)).collect();
        if free.is_empty() { Ok(None) } else { self.without(&[]).with(free).map(Some) }
    }

    /// The form that shows all arguments: asked for once to see whether it fits, and once for the prompt.
    fn detailed(&self, layout: Layout, budget: Budget) -> Option<Cow<'_, str>> {
        let make = || detailed(self.unread().as_ref().unwrap_or(self), layout, budget);
        let (of, text) = self.rendered.get_or_init(|| ((layout, budget), make()));
        if *of == (layout, budget) {
            return text.as_deref().map(Cow::Borrowed);
        }
        make().map(Cow::Owned)
    }
}

/// A text of limited length.
struct Text {
    written: String,
    room: usize,
}

impl Text {
    fn new(room: usize) -> Self {
        Self { written: String::new(), room }
    }

    /// `None` where there is no room for all of them.
    fn push(&mut self, piece: &str) -> Option<()> {
        self.room = self.room.checked_sub(piece.chars().count())?;
        self.written.push_str(piece);
        Some(())
    }

    /// The pieces with `between` between them; `None` as soon as they are too long.
    fn joined(mut self, pieces: impl Iterator<Item = String>, between: &str, end: &str) -> Option<String> {
        for (position, piece) in pieces.enumerate() {
            if position > 0 {
                self.push(between)?;
            }
            self.push(&piece)?;
        }
        self.push(end)?;
        Some(self.written)
    }
}

/// The richest form that shows all arguments, where one fits.
fn detailed(tools: &ToolSet, layout: Layout, budget: Budget) -> Option<String> {
    let richest = whole(tools, layout, budget, Notes::All);
    if layout == Layout::Operations {
        // A prompt of routes is read as a document is: lines without summaries still say what can be called.
        let mut forms =
            [(Detail::Opened, true), (Detail::All, true), (Detail::All, false), (Detail::Arguments, false)].into_iter();
        return richest.or_else(|| forms.find_map(|(detail, notes)| lines(tools, layout, budget, detail, notes)));
    }
    richest
        .or_else(|| whole(tools, layout, budget, Notes::Descriptions))
        .or_else(|| lines(tools, layout, budget, Detail::All, false))
}

fn whole(tools: &ToolSet, layout: Layout, budget: Budget, notes: Notes) -> Option<String> {
    let mut text = Text::new(budget.characters());
    match layout {
        Layout::Json if tools.is_empty() => Some("[]".to_owned()),
        Layout::Json => {
            text.push("[\n")?;
            text.joined(tools.iter().map(json_entry), ",\n", "\n]")
        }
        Layout::List => text.joined(tools.iter().map(|tool| list_entry(tool, notes)), "\n", ""),
        Layout::Operations => tools.whole_document(budget.characters().min(WHOLE)),
        Layout::Lines => {
            text.push(SIGNATURES)?;
            text.joined(tools.iter().map(|tool| line_entry(tool, notes)), "\n", "")
        }
    }
}

/// A line for each tool, followed by its `notes`.
fn lines(tools: &ToolSet, layout: Layout, budget: Budget, detail: Detail, notes: bool) -> Option<String> {
    let routes = layout == Layout::Operations;
    let mut text = Text::new(budget.characters());
    head(tools, layout, &mut text)?;
    if !routes {
        text.push(SIGNATURES)?;
    }
    let line = |tool: ToolView<'_>| {
        let spec = tools.get(tool.name()).filter(|_| notes);
        let below = spec.map(|tool| note_lines(tool, Notes::All)).unwrap_or_default();
        format!("{}{below}", tool.line(routes, detail))
    };
    text.joined(offered(tools).map(line), "\n", "")
}

/// The tools but for those that stand first.
fn offered(tools: &ToolSet) -> impl Iterator<Item = ToolView<'_>> {
    tools.shown().filter(|tool| !tool.kind().always_in_prompt())
}

/// The runtime's own tools and the one for scripts, which are shown whole in any form, those that look up others first.
fn head(tools: &ToolSet, layout: Layout, into: &mut Text) -> Option<()> {
    let mut own: Vec<&ToolSpec> = tools.plain().filter(|tool| tool.kind.always_in_prompt()).collect();
    if own.is_empty() {
        return Some(());
    }
    own.sort_by_key(|tool| tool.kind != ToolKind::LookUp);
    let own = own.into_iter();
    let (open, close, between) = if layout == Layout::Json { ("[\n", "\n]\n\n", ",\n") } else { ("", "\n\n", "\n") };
    let entries: Vec<String> = match layout {
        Layout::Json => own.map(json_entry).collect(),
        Layout::List => own.map(|tool| list_entry(tool, Notes::All)).collect(),
        Layout::Lines => own.map(|tool| line_entry(tool, Notes::All)).collect(),
        Layout::Operations => own.map(|tool| ToolView::Tool(tool).line(true, Detail::All)).collect(),
    };
    into.push(open)?;
    into.push(&entries.join(between))?;
    into.push(close)
}

/// Names, or else groups of them, below what says how the rest is found.
fn crowded(tools: &ToolSet, layout: Layout, budget: Budget) -> String {
    names(tools, layout, budget).unwrap_or_else(|| index(tools, layout, budget))
}

fn names(tools: &ToolSet, layout: Layout, budget: Budget) -> Option<String> {
    let routes = layout == Layout::Operations;
    let mut text = Text::new(budget.characters());
    head(tools, layout, &mut text)?;
    text.push(&advice(tools, layout, "Their names"))?;
    let name = |tool: ToolView<'_>| match tool.summary() {
        summary if routes || summary.is_empty() => tool.label(routes).into_owned(),
        summary => format!("{}: {}", tool.label(routes), first_words(summary)),
    };
    text.joined(offered(tools).map(name), "\n", "")
}

fn first_words(text: &str) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() && words.chars().count() + 1 + word.chars().count() > WORDS {
            words.push_str(" …");
            break;
        }
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(&truncate(word, WORDS));
    }
    words
}

/// Groups with some of their names. What says how the rest is found stands there whatever the budget is.
fn index(tools: &ToolSet, layout: Layout, budget: Budget) -> String {
    let routes = layout == Layout::Operations;
    let groups = grouped(offered(tools));
    let mut floor = Text::new(usize::MAX);
    // There is room for all of it.
    let _ = head(tools, layout, &mut floor);
    let _ = floor.push(&advice(tools, layout, "Their groups"));
    let room = budget.characters().saturating_sub(floor.written.chars().count());
    let line = |examples: usize, (group, tools): &(Cow<'_, str>, Vec<ToolView<'_>>)| {
        let count = format!("{} {}", tools.len(), what(layout, tools.len()));
        let group = truncate(&group.split_whitespace().collect::<Vec<_>>().join(" "), NAME);
        let shown: Vec<String> = tools.iter().take(examples).map(|tool| truncate(&tool.label(routes), NAME)).collect();
        let shown = shown.join(", ");
        match examples {
            0 => format!("{group}: {count}"),
            _ if tools.len() <= examples => format!("{group}: {shown}"),
            _ => format!("{group}: {count}, e.g. {shown}"),
        }
    };
    // One group alone tells little by its name: there as many examples as fit stand for it.
    let count = groups.first().filter(|_| groups.len() == 1).map_or(0, |(_, tools)| tools.len());
    let most = std::iter::successors(Some(count), |count| Some(count - count.div_ceil(16).min(*count)));
    let many: Vec<usize> = most.take_while(|count| *count > 8).collect();
    let fitting = many
        .iter()
        .chain(&EXAMPLES)
        .find_map(|examples| Text::new(room).joined(groups.iter().map(|group| line(*examples, group)), "\n", ""));
    let listed = fitting.unwrap_or_else(|| {
        let mut text = Text::new(room.saturating_sub(MORE));
        let shown = groups.iter().take_while(|group| text.push(&format!("{}\n", line(0, group))).is_some()).count();
        format!("{}… and {} more groups", text.written, groups.len() - shown)
    });
    format!("{}{listed}", floor.written)
}

fn what(layout: Layout, count: usize) -> &'static str {
    match (layout, count) {
        (Layout::Operations, 1) => "operation",
        (Layout::Operations, _) => "operations",
        (_, 1) => "tool",
        _ => "tools",
    }
}

/// One sentence on how to find what is not shown.
fn advice(tools: &ToolSet, layout: Layout, heading: &str) -> String {
    let routes = layout == Layout::Operations;
    let own = |name: &str| tools.plain().find(|tool| tool.kind == ToolKind::LookUp && tool.name == name);
    let written = |name: &str| own(name).map(|tool| ToolView::Tool(tool).label(routes));
    let count = offered(tools).count();
    let mut text = format!("There are {count} {}, too many to show with their arguments", what(layout, count));
    if !routes {
        text.push_str("; each can be called by its exact name, shown here or not");
    }
    text.push_str(match (own(SEARCH).is_some(), own(DESCRIBE).is_some()) {
        (false, false) => ".",
        _ => ": ",
    });
    if let Some(search) = written(SEARCH) {
        text.push_str("find one with ");
        text.push_str(&search);
        text.push_str(", ");
    }
    if let Some(describe) = written(DESCRIBE) {
        text.push_str("see its arguments with ");
        text.push_str(&describe);
        text.push_str(", ");
    }
    if own(SEARCH).is_some() || own(DESCRIBE).is_some() {
        text.push_str(if routes { "then CALL its route." } else { "then call it." });
    }
    format!("{text} {heading}:\n")
}

/// The lines of routes with what is said of their arguments.
#[cfg(test)]
pub(super) fn noted_lines(tools: &ToolSet) -> String {
    lines(tools, Layout::Operations, Budget::default(), Detail::Opened, true).unwrap_or_default()
}

#[cfg(test)]
mod tests;
