//! What is known of a value's origin.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What kind of text or rule vouches for a value. The order is that of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The task.
    Task,
    /// A later message of the user, or an answer to a question.
    User,
    /// The result of a call.
    Result,
    /// The program's instructions.
    Instructions,
    /// A text in the tool's schema.
    Schema,
    /// The default that the schema names.
    Default,
    /// A value that the schema lists.
    Enum,
    /// The id of an earlier call whose result is filled in.
    Reference,
    /// A text that the model is meant to write.
    Composed,
    /// Nothing to judge: a boolean, null, 0, 1, an empty text, or a value that the program filled in.
    Exempt,
    /// Found nowhere, but an image or file is in the conversation.
    Seen,
    /// The model's own words alone.
    Model,
    /// An example of the runtime alone.
    Example,
    /// Nowhere.
    None,
    /// Not decided: the search met its bound, texts are lost, or the value is in another script. Also a word of a newer version.
    #[serde(other)]
    Unknown,
}

/// The rule that led from the value to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// It stands there, but for case.
    Exact,
    /// It stands there with other separators or accents.
    Folded,
    /// A whole address.
    Address,
    /// Equal as a number.
    Number,
    /// The number without its minus sign.
    Sign,
    /// 0.05 for "5 %".
    Percent,
    /// 5000 for "5k" or "5 thousand".
    Scale,
    /// 0.5 for "1/2".
    Fraction,
    /// A number in words.
    Numeral,
    /// The number of a month that is named.
    Month,
    /// A number with a unit.
    Unit,
    /// A date in another form.
    Date,
    /// A date in words ("tomorrow"), which the run's clock confirms.
    Relative,
    /// A time in another form.
    Time,
    /// The code of a country, language, state, unit or the like, or the reverse.
    Code,
    /// Every part of a path.
    Path,
    /// The first part, before a comma.
    Part,
    /// Every part of a URL, in several places.
    Parts,
    /// Another number of the noun.
    Plural,
    /// All words, in any order.
    Words,
    /// The id of a call.
    Reference,
    /// A rule that needs no place, or one of a newer version.
    #[serde(other)]
    Other,
}

impl How {
    /// Whether the value follows from its place by a rule, and does not stand there itself.
    #[must_use]
    pub fn is_derived(self) -> bool {
        !matches!(self, Self::Exact | Self::Folded | Self::Address | Self::Number | Self::Reference | Self::Other)
    }
}

/// One place of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The kind of text.
    pub kind: Kind,
    /// Which text of that kind: `T3`, the number of a message, or empty.
    pub place: Arc<str>,
    /// Where it stands in that text, in bytes.
    pub span: Option<(usize, usize)>,
    /// The JSON pointer of the leaf, where the text is JSON.
    pub pointer: Option<String>,
    /// Whether that text comes from outside.
    pub untrusted: bool,
}

/// An address, id or long number inside a composed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it stands in the argument, in bytes.
    pub span: (usize, usize),
    /// The kind of its origin.
    pub kind: Kind,
    /// Which text of that kind.
    pub place: Arc<str>,
    /// Whether no trusted text has it.
    pub untrusted: bool,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// What vouches for it.
    pub kind: Kind,
    /// Which text of that kind: `T3`, the number of a message, or empty.
    pub place: Arc<str>,
    /// Where it stands in that text, in bytes; none if a rule needs no place.
    pub span: Option<(usize, usize)>,
    /// The JSON pointer of the leaf, where the text is JSON.
    pub pointer: Option<String>,
    /// The rule that led there.
    pub how: How,
    /// A short text or small number in a result, which may stand there by chance.
    pub weak: bool,
    /// None of its places is trusted.
    pub untrusted: bool,
    /// Up to 3 further places.
    pub others: Vec<Place>,
    /// Up to 8 addresses, ids and long numbers in a composed text.
    pub pieces: Vec<Piece>,
}

impl Origin {
    /// An origin without a place.
    #[must_use]
    pub fn of(kind: Kind) -> Self {
        Self {
            kind,
            place: Arc::from(""),
            span: None,
            pointer: None,
            how: How::Other,
            weak: false,
            untrusted: false,
            others: Vec::new(),
            pieces: Vec::new(),
        }
    }

    /// Whether something other than the model vouches for the value, or nothing needs to.
    #[must_use]
    pub fn is_stated(&self) -> bool {
        !matches!(self.kind, Kind::Model | Kind::Example | Kind::None)
    }
}
