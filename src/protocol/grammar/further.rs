//! The rest of a block behind its first calls, for clients that know how likely another call was.

use super::rules::{Node, Rules};
use super::write;
use serde::de::IgnoredAny;

/// The further calls of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Further {
    /// The start of a block, with the bracket of its array.
    open: String,
    /// The key before the name of a tool.
    before_name: &'static str,
    /// The rule `root` behind one call, behind two, and so on: at least one more call, and the end of the block.
    roots: Vec<String>,
}

impl Further {
    pub(in crate::protocol) fn new(rules: &Rules, open: String, before_name: &'static str, more: &[Node]) -> Self {
        let made = more.iter().take_while(|node| rules.can_be_made(node));
        Self { open, before_name, roots: made.map(|node| write::gbnf_root(rules, node)).collect() }
    }

    /// The bytes of the first tool's name in a reply. `None` without a block, or if the name is not complete yet.
    pub fn first_name(&self, written: &str) -> Option<(usize, usize)> {
        let block = written.find(&self.open)?;
        let call = written.get(block..)?.find(self.before_name)?;
        // Behind the opening quote.
        let start = block + call + self.before_name.len() + 1;
        let length = written.get(start..)?.find('"')?;
        Some((start, start + length))
    }

    /// The rule `root` of the rest. `None` if the reply does not end behind a whole call, or no call may follow it.
    fn root_behind(&self, written: &str) -> Option<&str> {
        if !written.ends_with('}') {
            return None;
        }
        let block = written.find(&self.open)? + self.open.len();
        let calls: Vec<IgnoredAny> = serde_json::from_str(&format!("[{}]", written.get(block..)?)).ok()?;
        self.roots.get(calls.len().checked_sub(1)?).map(String::as_str)
    }

    /// The language (GBNF) of the rest of a block behind a whole call: at least one more call, and its end. `whole` is the
    /// language of whole replies. `None` if no call may follow.
    pub fn gbnf_behind(&self, written: &str, whole: &str) -> Option<String> {
        let root = self.root_behind(written)?;
        let (_, rules) = whole.split_once('\n')?;
        Some(format!("{root}{rules}"))
    }
}
