//! Echoes: the result of a call doesn't vouch for values that the call had itself, in any form.

use super::from::Origin;
use super::index::{ARGUMENTS, Echo, RESULTS, Texts};
use super::leaves::{Step, inside};
use super::look::{Called, Look, Scope, Spot};
use super::number::Decimal;
use super::schema::Specs;
use super::text::Found;
use super::token::Words;
use serde_json::Value;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Forms in which a result may repeat an argument; each search may find another.
const FORMS: usize = 8;
/// How much longer than an argument its words in another order may be.
const SPREAD: usize = 3;
const NEAR: usize = 16;

/// An argument of a call, as its result may repeat it.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    value: Value,
    pub(crate) words: Words,
    pub(crate) origin: Option<Origin>,
}

impl Said {
    /// The leaves of an argument.
    pub(crate) fn leaves(value: &Value, origin: Option<&Origin>, found: &mut Vec<Self>) {
        let mut leaf = |text: &str| {
            found.push(Self { value: value.clone(), words: Words::of(text), origin: origin.cloned() });
        };
        match value {
            Value::String(text) => leaf(text),
            Value::Number(number) => leaf(&Decimal::of(number).text()),
            _ => drop(inside(value, "", &mut |_, _, item| {
                Self::leaves(item, origin, found);
                true
            })),
        }
    }

    /// Whether the model made it up, so that a result that repeats it in another form doesn't vouch for that form.
    pub(crate) fn is_made_up(&self) -> bool {
        self.origin.as_ref().is_none_or(|origin| !origin.is_stated())
    }

    pub(crate) fn text(&self) -> String {
        self.value.as_str().map_or_else(|| self.value.to_string(), str::to_owned)
    }
}

impl Echo {
    /// The values of a call with their origins, by JSON pointers, and the names that the model has chosen for fields.
    #[must_use]
    pub fn of_call(arguments: &Value, origins: &[(String, Origin)], parameters: &Value) -> Vec<Self> {
        let known = origins.iter().map(|(pointer, origin)| (&**pointer, origin)).collect();
        let mut echo = Vec::new();
        Self::add(arguments, "", &known, (&Specs::new(parameters), 0), &mut echo);
        echo
    }

    fn add(
        value: &Value,
        pointer: &str,
        known: &BTreeMap<&str, &Origin>,
        (specs, depth): (&Specs<'_>, usize),
        echo: &mut Vec<Self>,
    ) {
        // The empty pointer stands for the values that were not judged.
        let origin = known.get(pointer).copied().filter(|_| depth > 0);
        let deeper = |echo: &mut Vec<Self>| {
            inside(value, pointer, &mut |step, pointer, value| {
                let specs = match step {
                    Step::Name(name) => {
                        if if depth == 0 { specs.is_open_to(name) } else { !specs.declares(name) } {
                            echo.push(Self { value: Value::from(name), origin: None });
                        }
                        specs.property(name)
                    }
                    Step::Position(at) => specs.item(at),
                };
                Self::add(value, &pointer, known, (&specs, depth + 1), echo);
                true
            })
        };
        // A list or object that was judged as one has one origin.
        if origin.is_some() || deeper(echo).is_none() {
            echo.push(Self { value: value.clone(), origin: origin.cloned() });
        }
    }
}

/// A made-up argument as the result of its call repeats it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quote {
    segment: u32,
    span: (usize, usize),
}

impl Quote {
    fn has(&self, spot: &Spot) -> bool {
        self.segment == spot.segment && self.span.0 <= spot.span.0 && spot.span.1 <= self.span.1
    }
}

/// The arguments and places that must not vouch for the value that is searched.
#[derive(Debug, Default)]
pub(crate) struct Echoes {
    pub(crate) value: Rc<Words>,
    /// The origin that the value had as an argument, if a result that repeats it was left out.
    repeated: Option<Origin>,
    /// Made-up arguments that are the value in another form.
    arguments: Vec<u32>,
    /// The places in a new result that repeat its arguments, as far as they are known.
    quotes: Vec<Quote>,
}

impl Echoes {
    pub(crate) fn begin(&mut self, value: &str) {
        self.value = Rc::new(Words::of(value));
        self.repeated = None;
        self.arguments.clear();
    }

    /// Whether a text may vouch for the value.
    pub(crate) fn admits(&mut self, texts: &Texts, scope: Scope, part: usize, text: u32) -> bool {
        match (scope, part) {
            (Scope::Quotes(result), _) => text == result,
            (_, ARGUMENTS) => !self.arguments.contains(&text),
            (Scope::Conversation, RESULTS) => {
                let said = texts.part(part).texts.get(text as usize).map(|text| &text.said);
                let Some(said) = said.into_iter().flatten().find(|said| said.words.contains(&self.value)) else {
                    let result = |argument: &u32| texts.results_of_arguments.get(*argument as usize);
                    return !self.arguments.iter().any(|argument| result(argument) == Some(&text));
                };
                self.repeated = said.origin.clone().filter(Origin::is_stated).or_else(|| self.repeated.take());
                false
            }
            _ => true,
        }
    }

    /// Whether a place in such a text may vouch for the value.
    pub(crate) fn admits_place(&self, texts: &Texts, scope: Scope, spot: &Spot) -> bool {
        let quotes = match (scope, spot.part) {
            (Scope::Quotes(_), _) => &self.quotes,
            (Scope::Conversation, RESULTS) => match texts.part(RESULTS).texts.get(spot.text as usize) {
                Some(text) => &text.quotes,
                None => return false,
            },
            _ => return true,
        };
        !quotes.iter().any(|quote| quote.has(spot))
    }
}

impl Look<'_> {
    /// The origin that an earlier call had for the value, if results that repeat it were left out.
    pub(crate) fn repeated(&mut self) -> Option<Origin> {
        self.echoes.repeated.take()
    }

    /// Searches the conversation, without the results of calls for which the value was made up in another form.
    pub(crate) fn vouched(&mut self, search: impl Fn(&mut Self, Scope) -> Option<Found>) -> Option<Found> {
        loop {
            let found = search(self, Scope::Conversation)?;
            if found.spots.iter().any(|spot| spot.part != RESULTS) || self.is_blank(Scope::Arguments) {
                return Some(found);
            }
            let Some(said) = search(self, Scope::Arguments) else { return Some(found) };
            // Those that are left out are not found again, so that this comes to an end.
            self.echoes.arguments.extend(said.spots.iter().map(|spot| spot.text));
            if said.spots.is_empty() || self.steps.is_spent() {
                return None;
            }
        }
    }
}

impl Texts {
    /// The made-up arguments of its call that a new result repeats.
    pub(crate) fn quotes(&self, result: u32) -> Vec<Quote> {
        let Some(text) = self.part(RESULTS).texts.get(result as usize) else { return Vec::new() };
        let called = Called::new(&Value::Null, "");
        let mut look = Look::new(self, &called);
        for said in text.said.iter().filter(|said| said.is_made_up()) {
            let text = said.text();
            for _ in 0..FORMS {
                look.begin(&text);
                let Some(found) = look.value_of(Scope::Quotes(result), &said.value) else { break };
                // Words far apart are no repetition.
                let is_near = |spot: &Spot| spot.span.1 - spot.span.0 <= SPREAD * text.len() + NEAR;
                let near = found.spots.iter().filter(|spot| is_near(spot));
                let before = look.echoes.quotes.len();
                look.echoes.quotes.extend(near.map(|spot| Quote { segment: spot.segment, span: spot.span }));
                if look.echoes.quotes.len() == before {
                    break;
                }
            }
        }
        look.echoes.quotes
    }
}
