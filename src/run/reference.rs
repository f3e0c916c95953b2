//! References between calls (chatty): a string argument that is exactly `$call_id` stands for that call's result.
//! `$1` is none: a price, or a group of a regular expression.

use crate::reply::Value;
use std::collections::{BTreeSet, HashMap, HashSet};

/// One string argument that may be a reference.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mention<'a> {
    /// The name after the `$`.
    pub(super) name: &'a str,
    /// JSON pointer of the string in the arguments.
    pub(super) pointer: String,
}

/// All strings of the form `$name` in `arguments`; `$$name` is a literal and is none. With `numbers`, as in logs of older
/// versions, `$1` is one as well.
pub(super) fn mentions(arguments: &Value, numbers: bool) -> Vec<Mention<'_>> {
    let mut found = Vec::new();
    visit(arguments, &mut String::new(), &mut |text, pointer| {
        let number = || text.strip_prefix('$').filter(|name| numbers && !name.is_empty() && !name.starts_with('$'));
        if let Some(name) = reference(text).or_else(number) {
            found.push(Mention { name, pointer: pointer.to_owned() });
        }
    });
    found
}

/// Words that say that a result is meant.
const RESULTS: [&str; 12] =
    ["result", "results", "output", "outputs", "response", "value", "return", "ref", "of", "the", "from", "call"];
/// Characters of a text that may be a reference and nothing else.
const LONGEST: usize = 100;

/// The names of the calls of a block, to find in text.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    ids: HashSet<&'a str>,
    /// The lengths of the names, the longest first.
    lengths: Vec<usize>,
    /// The names of their tools, with theirs.
    tools: HashMap<&'a str, &'a str>,
}

impl<'a> Names<'a> {
    pub(super) fn new(names: impl Iterator<Item = &'a str>) -> Self {
        let names: HashSet<&str> = names.filter(|name| can_be_referred_to(name)).collect();
        let lengths: BTreeSet<usize> = names.iter().map(|name| name.len()).collect();
        Self { ids: names, lengths: lengths.into_iter().rev().collect(), tools: HashMap::new() }
    }

    /// With the tool of each call, by which a model may refer to it: `{{search}}`.
    pub(super) fn of_tools(self, tools: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        Self { tools: tools.collect(), ..self }
    }

    /// The first string in `arguments` that names one of them beside other text: `see $name`, `$name.field`, `${name}`.
    /// Whole references are `known` ones, too.
    pub(super) fn inside_text(&self, arguments: &Value, known: impl Fn(&str) -> bool) -> Option<Mention<'a>> {
        let mut found = None;
        visit(arguments, &mut String::new(), &mut |text, pointer| {
            let is_whole = || reference(text).is_some_and(|name| self.ids.contains(name) || known(name));
            if found.is_none() && !is_whole() {
                let name = self.find(text).or_else(|| self.spelled(text));
                found = name.map(|name| Mention { name, pointer: pointer.to_owned() });
            }
        });
        found
    }

    /// The one that `text` is nothing but, in another spelling: `{{call_1}}`, `<call_1>`, `$CALL_1`, `call_1.result`,
    /// `result of call_1`.
    fn spelled(&self, text: &str) -> Option<&'a str> {
        if text.len() > LONGEST || text.starts_with("$$") || text.starts_with("$ ") {
            return None;
        }
        let marked = text.starts_with(['$', '＄', '{', '<', '%', '@', '[', '#']);
        let of_call = |word: &str| {
            let known = self.ids.get(word).copied();
            known.or_else(|| self.ids.get(word.to_ascii_lowercase().as_str()).copied())
        };
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
        let mut words = words.filter(|word| !word.is_empty());
        let mut first = words.next()?;
        let mut path = text.ends_with(|c: char| !c.is_alphanumeric() && c != '_');
        for word in words {
            let lead = RESULTS.contains(&first.to_ascii_lowercase().as_str());
            // `<one two>` is a text; `one.two` and `one[0]` are parts of a result.
            if !lead && text.contains(char::is_whitespace) && !RESULTS.contains(&word.to_ascii_lowercase().as_str()) {
                return None;
            }
            path = true;
            if lead {
                first = word;
            }
        }
        let plain = RESULTS.iter().find_map(|end| first.strip_suffix(end)?.strip_suffix('_')).unwrap_or(first);
        let short = plain.len() < first.len();
        // Without a mark, only a name that says so is no text of its own.
        let named = [first, plain].into_iter().find_map(|word| {
            let certain = is_id_of_a_call(&word.to_ascii_lowercase()) && (path || short || word == text);
            of_call(word).filter(|_| marked || certain)
        });
        named.or_else(|| self.tools.get(plain).copied().filter(|_| marked && !text.starts_with(['[', '#', '@'])))
    }

    /// The first of them that follows a `$` in `text` as a whole word.
    fn find(&self, text: &str) -> Option<&'a str> {
        let mut rest = text;
        while let Some((_, after)) = rest.split_once('$') {
            if after.starts_with('$') {
                rest = after.trim_start_matches('$');
                continue;
            }
            let written = after.strip_prefix('{').unwrap_or(after);
            let named = |length: &usize| {
                let (name, next) = written.split_at_checked(*length)?;
                let is_word = !next.starts_with(|next: char| next.is_alphanumeric() || next == '_');
                self.ids.get(name).filter(|_| is_word).copied()
            };
            if let Some(name) = self.lengths.iter().find_map(named) {
                return Some(name);
            }
            rest = after;
        }
        None
    }
}

/// The name that a string refers to, if it is nothing but a reference.
fn reference(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?;
    (!name.starts_with('$') && can_be_referred_to(name)).then_some(name)
}

/// Whether a name is spelled as the ids of calls are: `call_9`.
pub(super) fn is_id_of_a_call(name: &str) -> bool {
    let digits = name.strip_prefix("call_").unwrap_or("");
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a name may be that of a reference.
pub(super) fn can_be_referred_to(name: &str) -> bool {
    name.bytes().any(|byte| !byte.is_ascii_digit())
}

fn visit<'a>(value: &'a Value, pointer: &mut String, found: &mut impl FnMut(&'a str, &str)) {
    let length = pointer.len();
    match value {
        Value::String(text) => found(text, pointer),
        Value::Array(items) => {
            for (position, item) in items.iter().enumerate() {
                pointer.push('/');
                pointer.push_str(&position.to_string());
                visit(item, pointer, found);
                pointer.truncate(length);
            }
        }
        Value::Object(object) => {
            for (name, item) in object.iter() {
                pointer.push('/');
                pointer.push_str(&crate::json_pointer::escape(name));
                visit(item, pointer, found);
                pointer.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The arguments with each `$name` that `result` knows replaced by that call's result, and `$$name` by `$name` where the
/// latter would be a reference: to a call that `is_call` knows, or by an id that looks like that of one.
pub(super) fn substitute(
    arguments: &Value,
    result: &dyn Fn(&str) -> Option<Value>,
    is_call: &dyn Fn(&str) -> bool,
) -> Value {
    match arguments {
        Value::String(text) => match text.strip_prefix('$') {
            Some(literal) if literal.starts_with('$') => {
                let name = literal.trim_start_matches('$');
                if is_call(name) || is_id_of_a_call(name) { Value::from(literal) } else { arguments.clone() }
            }
            // The log says which calls are referred to: what older versions took for a reference stays one.
            Some(name) => result(name).unwrap_or_else(|| arguments.clone()),
            None => arguments.clone(),
        },
        Value::Array(items) => Value::Array(items.iter().map(|item| substitute(item, result, is_call)).collect()),
        Value::Object(object) => {
            Value::Object(object.iter().map(|(name, item)| (name, substitute(item, result, is_call))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn only_whole_strings_are_mentions() {
        let arguments = value(r#"{"a": "$one", "b": ["x $two", {"c/d": "$three"}], "e": "$$four", "f": "$"}"#);
        let found: Vec<_> =
            mentions(&arguments, false).into_iter().map(|mention| (mention.name, mention.pointer)).collect();
        assert_eq!(found, [("one", "/a".to_owned()), ("three", "/b/1/c~1d".to_owned())]);
    }

    #[test]
    fn ids_of_digits_are_no_references() {
        let arguments = value(r#"{"a": "$1", "b": "$20", "c": "$", "d": "$$1"}"#);
        assert_eq!(mentions(&arguments, false), []);
        assert_eq!(mentions(&arguments, true).len(), 2);
        let names = Names::new(["1"].into_iter());
        assert_eq!(names.inside_text(&value(r#"{"a": "costs $1", "b": "s/(a)/$1/"}"#), |_| false), None);
    }

    #[test]
    fn a_name_beside_other_text_is_found() {
        let calls =
            Names::new(["one", "two", "a b", "a", "call_1"].into_iter()).of_tools([("find", "one")].into_iter());
        let known = |name: &str| name == "one-earlier";
        for text in [
            "see $one",
            "$one.field",
            "$one ",
            " $one",
            "$one$",
            "${one}",
            "$x and $one",
            "$a b!",
            "$one\n",
            "($two)",
            "$two-x",
            "{{one}}",
            "{one}",
            "<one>",
            "$(one)",
            "%one%",
            "＄one",
            "$ONE",
            "call_1",
            "call_1.result",
            "{{call_1.result}}",
            "<call_1[0]>",
            "@call_1",
            "[call_1]",
            "[[call_1]]",
            "<result of call_1>",
            "$results.call_1",
            "$call_1_result",
            "ref:call_1",
            "{{ result.call_1 }}",
            "CALL_1",
            "{{find}}",
            "$find",
        ] {
            let arguments = serde_json::json!({"list": [{"text": text}]});
            let found = calls.inside_text(&value(&arguments.to_string()), known).map(|found| found.pointer);
            assert_eq!(found.as_deref(), Some("/list/0/text"), "{text}");
        }
    }

    #[test]
    fn other_text_names_no_call() {
        let calls =
            Names::new(["one", "two", "a b", "a", "call_1"].into_iter()).of_tools([("find", "one")].into_iter());
        let known = |name: &str| name == "one-earlier";
        for text in [
            "$one",
            "$$one",
            "see $$one",
            "$ones",
            "$one_2",
            "one",
            "$ one",
            "$",
            "$three.x",
            "$HOME/one",
            "$one-earlier",
            "(one)",
            "one.txt",
            "<one two>",
            "call_2",
            "$$(one)",
            "find",
            "[find]",
            "the result",
            "see call_1 there",
        ] {
            let arguments = serde_json::json!({"text": text});
            assert_eq!(calls.inside_text(&value(&arguments.to_string()), known), None, "{text}");
        }
    }

    #[test]
    fn results_keep_their_type_and_unknown_names_stay() {
        let result = |name: &str| (name == "one").then(|| value("[1, 2]"));
        assert_eq!(
            substitute(&value(r#"{"a": "$one", "b": "$five", "c": "$$one"}"#), &result, &|name| name == "one"),
            value(r#"{"a": [1, 2], "b": "$five", "c": "$one"}"#)
        );
    }

    proptest::proptest! {
        /// No text loses a character but for one that would otherwise be a reference.
        #[test]
        fn dollars_stay(text in "\\${0,4}[a-z_ =^\\\\$\n1]{0,6}\\${0,3}", id in "\\${2,4}(one|call_[0-9])") {
            let is_call = |name: &str| name == "one";
            let of = |text: &str| substitute(&Value::from(text), &|_| None, &is_call);
            if text.trim_start_matches('$') != "one" {
                proptest::prop_assert_eq!(of(&text), Value::from(text.as_str()));
            }
            proptest::prop_assert_eq!(of(&id), Value::from(id.strip_prefix("$").unwrap_or("")));
        }
    }
}
