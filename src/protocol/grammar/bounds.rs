//! How much may be said at each place. A small model that is free to go on does: every string and list has an end, and
//! `max_tokens` follows from these.

/// Characters of a ticket's description.
pub(super) const DESCRIPTION: u32 = 80;

/// Characters of a final or direct answer, and of a returned string.
pub(super) const ANSWER: u32 = 400;

/// Characters of a string argument, where its schema does not ask for more.
pub(super) const STRING: u32 = 160;

/// Characters of a string where the schema does not say what is wanted.
pub(super) const LOOSE_STRING: u32 = 80;

/// Characters of a key that the schema does not name.
pub(super) const KEY: u32 = 40;

/// Entries of an object whose keys the schema does not name; of one in another such object or array, and so on.
pub(super) const ENTRIES: [u32; 3] = [4, 2, 1];

/// Arguments of a call whose schema is not spelled out.
pub(super) const ARGUMENTS: u32 = 8;

/// Items of an array, where its schema does not ask for more; of one in another array or such object, and so on.
pub(super) const ITEMS: [u32; 4] = [8, 4, 2, 1];

/// Characters before and after a pattern that is not anchored there.
pub(super) const AFFIX: u32 = 40;

/// Times for `*` and `+` of a pattern, and for those inside others.
pub(super) const STAR: [u32; 3] = [64, 12, 4];

/// Digits of an integer without limits: every such number is exact in a float, too.
pub(super) const DIGITS: u32 = 15;

/// Digits after the point.
pub(super) const DECIMALS: u32 = 6;

/// Values that are listed one by one, where the schema can be met in no simpler way.
pub(super) const LISTED: usize = 32;

/// Depth of a value that the schema leaves open.
pub(super) const OPEN_DEPTH: u32 = 2;

/// How often one reference is followed on the way down: a schema may be once inside itself.
pub(super) const RECURSION: usize = 2;

/// Depth of arguments.
pub(super) const DEPTH: usize = 16;

/// Schemas looked at for one tool; past it what is not required is left out.
pub(super) const WORK: usize = 2_000;

/// Schemas looked at for one tool in all: a schema that takes more has no rules.
pub(super) const MOST_WORK: usize = 20_000;

/// The most that a schema can ask for: a `minLength` or `minItems` beyond it is not met.
pub(super) const MOST: u32 = 1_000;

/// Calls of one chatty block.
pub(super) const CALLS: usize = 4;

/// Bytes of a regular expression for `args` in the JSON Schema.
pub(super) const PATTERN: usize = 2_000;

/// Tokens beyond those counted: an end token, and blanks that a model's tokens begin with.
pub(super) const MARGIN: u64 = 16;
