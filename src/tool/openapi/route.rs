//! Routes: what a model writes to name an operation.

use super::operation::{METHODS, Operation};
use crate::reply::{Code, Violation};
use crate::tool::describe::{any_of, named, truncate};
use crate::tool::nearest_names::{closest, meant};
use crate::tool::types::percent_decode;
use indexmap::IndexMap;
use std::collections::HashMap;

/// Characters of a route; a longer one names nothing.
const LONGEST: usize = 8_192;

/// Where each operation is found.
#[derive(Debug)]
pub(crate) struct Routes {
    by_id: HashMap<String, Vec<usize>>,
    /// Operations by method and path as the document writes them; `None` where several have the same.
    by_route: HashMap<String, Option<usize>>,
    paths: Vec<Template>,
}

#[derive(Debug)]
struct Template {
    path: String,
    segments: Vec<Vec<Piece>>,
    /// Positions of the operations on this path.
    operations: Vec<usize>,
}

/// A stretch of a segment: text that must stand there, or a placeholder.
#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    Text(String),
    Name(String),
}

/// An operation with the values that its route holds, decoded.
#[derive(Debug)]
pub(crate) struct Matched<'a> {
    pub(crate) operation: &'a Operation,
    pub(crate) path: Vec<(String, String)>,
    pub(crate) query: Vec<(String, String)>,
}

/// A route taken apart.
struct Written<'a> {
    method: Option<String>,
    /// Path or id.
    target: &'a str,
    query: Vec<(String, String)>,
}

type Operations = IndexMap<String, Operation>;

impl Routes {
    pub(crate) fn new<'a>(operations: impl Iterator<Item = &'a Operation>) -> Self {
        let mut by_id: HashMap<String, Vec<usize>> = HashMap::new();
        let mut by_route: HashMap<String, Option<usize>> = HashMap::new();
        let mut paths: IndexMap<&str, Vec<usize>> = IndexMap::new();
        for (position, operation) in operations.enumerate() {
            if let Some(id) = &operation.id {
                by_id.entry(id.clone()).or_default().push(position);
            }
            let route = format!("{} {}", operation.method, operation.path);
            by_route.entry(route).and_modify(|twice| *twice = None).or_insert(Some(position));
            paths.entry(&operation.path).or_default().push(position);
        }
        let paths = paths
            .into_iter()
            .map(|(path, operations)| Template { path: path.to_owned(), segments: segments(path), operations })
            .collect();
        Self { by_id, by_route, paths }
    }

    /// Finds the one operation that `route` names.
    pub(crate) fn resolve<'a>(&self, route: &str, operations: &'a Operations) -> Result<Matched<'a>, Violation> {
        if route.len() > LONGEST {
            return Err(unknown(route, operations));
        }
        if let Some(ids) = self.by_id.get(route.trim()) {
            let candidates: Vec<&Operation> = ids.iter().filter_map(|at| at_position(operations, *at)).collect();
            return one(route, &candidates).map(|operation| plain(operation, Vec::new()));
        }
        if let Some(operation) = self.by_route.get(route).copied().flatten().and_then(|at| at_position(operations, at))
        {
            return Ok(plain(operation, Vec::new()));
        }
        if let Some((before, fragment)) = route.split_once('#') {
            let message = format!("the route {} has a fragment, which is never sent", named(route));
            return Err(Violation::new(Code::UnknownTool, message)
                .expected("a route without '#'")
                .found(named(&format!("#{fragment}")))
                .hint(format!("use {}, with values in the payload", named(before))));
        }
        let written = Written::read(route);
        if !written.target.starts_with('/') {
            let ids = self.by_id.get(written.target).into_iter().flatten();
            let candidates: Vec<&Operation> = ids
                .filter_map(|at| at_position(operations, *at))
                .filter(|operation| written.allows(operation))
                .collect();
            if candidates.is_empty() {
                return Err(unknown(route, operations));
            }
            return one(route, &candidates).map(|operation| plain(operation, written.query));
        }
        self.by_path(route, written, operations)
    }

    fn by_path<'a>(
        &self,
        route: &str,
        written: Written<'_>,
        operations: &'a Operations,
    ) -> Result<Matched<'a>, Violation> {
        let mut fitting = self.fitting(written.target);
        if fitting.is_empty() {
            // A slash too many or too few at the end leaves one reading, if nothing is changed where a value may be missing.
            let whole = written.target.ends_with('/').then(|| self.fitting(&format!("{}0", written.target)));
            let changes = |operation: &&Operation| written.allows(operation) && operation.method != "GET";
            if whole.into_iter().flatten().any(|(template, _)| {
                template.operations.iter().filter_map(|at| at_position(operations, *at)).any(|it| changes(&it))
            }) {
                let hint = "write every value of the path, or leave out the slash at its end";
                return Err(unknown(route, operations).hint(hint));
            }
            let other = written.target.strip_suffix('/').map_or_else(|| format!("{}/", written.target), str::to_owned);
            fitting = self.fitting(&other);
        }
        if fitting.is_empty() {
            return Err(unknown(route, operations));
        }
        let on_path = |template: &Template| -> Vec<&'a Operation> {
            template.operations.iter().filter_map(|at| at_position(operations, *at)).collect()
        };
        let allowed = |template: &Template| on_path(template).iter().any(|operation| written.allows(operation));
        if !fitting.iter().any(|(template, _)| allowed(template)) {
            let methods: Vec<String> = fitting
                .iter()
                .flat_map(|(template, _)| on_path(template))
                .map(|operation| named(&operation.name))
                .collect();
            let message = format!("unknown route {}: this path has no such method", named(route));
            return Err(Violation::new(Code::UnknownTool, message)
                .expected(any_of(&methods))
                .found(named(route))
                .hint(format!("did you mean {}?", any_of(&methods))));
        }
        fitting.retain(|(template, _)| allowed(template));
        let best = most_specific(fitting);
        let candidates: Vec<&Operation> = best
            .iter()
            .flat_map(|(template, _)| on_path(template))
            .filter(|operation| written.allows(operation))
            .collect();
        let operation = one(route, &candidates)?;
        if written.method.is_none() && operation.method != "GET" {
            self.one_method(route, written.target, operations)?;
        }
        let path = best.into_iter().next().map(|(_, values)| values).unwrap_or_default();
        if let Some((name, value)) = path.iter().find(|(_, value)| stands_for_a_value(value)) {
            let message =
                format!("expected a value for '{name}' in the route: got {}, which stands for one", named(value));
            let hint = "write the value itself in the route, or in the payload if it is meant word for word";
            return Err(Violation::new(Code::UnknownTool, message).found(named(route)).hint(hint));
        }
        Ok(Matched { operation, path, query: written.query })
    }

    /// Refuses a path without a method that may name operations of several: `/users/all` is one path, and `all` may be a
    /// value in another.
    fn one_method(&self, route: &str, target: &str, operations: &Operations) -> Result<(), Violation> {
        let written: Vec<&str> = target.split('/').skip(1).collect();
        let fits = |template: &&Template| template.path == target || template.fit(&written).is_some();
        let positions = self.paths.iter().filter(fits).flat_map(|template| &template.operations);
        let all: Vec<&Operation> = positions.filter_map(|at| at_position(operations, *at)).collect();
        match all.split_first() {
            Some((first, rest)) if rest.iter().any(|other| other.method != first.method) => {
                one(route, &all).map(|_| ())
            }
            _ => Ok(()),
        }
    }

    /// The templates that a path fits, each with the values of its placeholders. A path that is a template word for word
    /// fits that one alone.
    fn fitting(&self, path: &str) -> Vec<(&Template, Vec<(String, String)>)> {
        if let Some(template) = self.paths.iter().find(|template| template.path == path) {
            return vec![(template, Vec::new())];
        }
        let written: Vec<&str> = path.split('/').skip(1).collect();
        self.paths.iter().filter_map(|template| Some((template, template.fit(&written)?))).collect()
    }
}

impl Written<'_> {
    fn read(route: &str) -> Written<'_> {
        let route = route.trim();
        let (method, target) = match route.split_once(char::is_whitespace) {
            Some((word, rest)) if METHODS.contains(&word.to_lowercase().as_str()) => {
                (Some(word.to_uppercase()), rest.trim_start())
            }
            _ => (None, route),
        };
        let (target, query) = target.split_once('?').unwrap_or((target, ""));
        let query = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                let decode = |text: &str| percent_decode(&text.replace('+', " "));
                (decode(name), decode(value))
            })
            .collect();
        Written { method, target, query }
    }

    fn allows(&self, operation: &Operation) -> bool {
        self.method.as_ref().is_none_or(|method| *method == operation.method)
    }
}

impl Template {
    /// The values of the placeholders where `written` has this shape.
    fn fit(&self, written: &[&str]) -> Option<Vec<(String, String)>> {
        if written.len() != self.segments.len() {
            return None;
        }
        let mut values = Vec::new();
        for (pieces, text) in self.segments.iter().zip(written) {
            fit_segment(pieces, text, &mut values)?;
        }
        Some(values)
    }

    /// Which segments are plain text.
    fn literal(&self) -> Vec<bool> {
        self.segments.iter().map(|pieces| pieces.iter().all(|piece| matches!(piece, Piece::Text(_)))).collect()
    }
}

fn fit_segment(pieces: &[Piece], text: &str, values: &mut Vec<(String, String)>) -> Option<()> {
    let mut rest = text;
    let mut pieces = pieces.iter().peekable();
    if pieces.peek().is_none() {
        return text.is_empty().then_some(());
    }
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::Text(expected) => {
                let decoded = percent_decode(rest);
                rest = match rest.strip_prefix(expected.as_str()) {
                    Some(after) => after,
                    None if decoded == *expected => "",
                    None => return None,
                };
            }
            Piece::Name(name) => {
                let value = match pieces.peek() {
                    Some(Piece::Text(next)) => {
                        // An empty value is none, so the text that ends it is looked for from the second character on.
                        let first = rest.chars().next()?.len_utf8();
                        let end = rest.get(first..)?.find(next.as_str())? + first;
                        rest.get(..end)?
                    }
                    _ => rest,
                };
                if value.is_empty() {
                    return None;
                }
                rest = rest.get(value.len()..)?;
                if !is_placeholder(value, name) {
                    values.push((name.clone(), percent_decode(value)));
                }
            }
        }
    }
    rest.is_empty().then_some(())
}

/// Whether a segment was left to be filled: `{petId}`, or `:id` and `<id>` with the placeholder's own name.
fn is_placeholder(value: &str, name: &str) -> bool {
    let braces = value.strip_prefix('{').is_some_and(|rest| rest.ends_with('}'));
    let angles = value.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) == Some(name);
    braces || angles || value.strip_prefix(':') == Some(name)
}

/// Whether a value of a path stands for one that is not there: `...`, `YOUR_ID`, `undefined`, `<user>`, `"5"`.
fn stands_for_a_value(value: &str) -> bool {
    let value = value.trim();
    let empty = ["", "nan", "nil", "none", "null", "tba", "tbd", "todo", "undefined"];
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let quoted = |quote: char| value.len() > 1 && value.starts_with(quote) && value.ends_with(quote);
    let framed = |open: char, close: char| value.starts_with(open) && value.ends_with(close);
    let named = value.strip_prefix("YOUR").is_some_and(|rest| rest.starts_with(['_', '-']));
    empty.iter().any(|word| value.eq_ignore_ascii_case(word))
        || value.chars().all(|c| matches!(c, '.' | '…'))
        || value.len() > 2 && value.bytes().all(|byte| byte.eq_ignore_ascii_case(&b'x'))
        || value.split_once(" or ").is_some_and(|(one, other)| number(one) && number(other))
        || value.strip_prefix('$').is_some_and(|name| name.starts_with(|c: char| c.is_alphabetic() || c == '{'))
        || named
        || ['"', '\'', '`'].into_iter().any(quoted)
        || [('<', '>'), ('[', ']'), ('{', '}')].into_iter().any(|(open, close)| framed(open, close))
        || value.starts_with(':') && value.chars().skip(1).all(|c| c.is_alphanumeric() || c == '_')
}

fn segments(path: &str) -> Vec<Vec<Piece>> {
    path.split('/').skip(1).map(pieces).collect()
}

pub(super) fn pieces(segment: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = segment;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, following)) = after.split_once('}') else {
            break;
        };
        if !before.is_empty() {
            pieces.push(Piece::Text(before.to_owned()));
        }
        pieces.push(Piece::Name(name.to_owned()));
        rest = following;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    pieces
}

/// Drops every template that is less specific than another: `/pets/mine` goes before `/pets/{id}`.
fn most_specific<T>(fitting: Vec<(&Template, T)>) -> Vec<(&Template, T)> {
    let shapes: Vec<Vec<bool>> = fitting.iter().map(|(template, _)| template.literal()).collect();
    let beaten = |shape: &[bool]| {
        shapes
            .iter()
            .any(|other| other.as_slice() != shape && other.iter().zip(shape).all(|(other, own)| *other || !*own))
    };
    let keep: Vec<bool> = shapes.iter().map(|shape| !beaten(shape)).collect();
    fitting.into_iter().zip(keep).filter_map(|(entry, keep)| keep.then_some(entry)).collect()
}

fn at_position(operations: &Operations, position: usize) -> Option<&Operation> {
    operations.get_index(position).map(|(_, operation)| operation)
}

fn plain(operation: &Operation, query: Vec<(String, String)>) -> Matched<'_> {
    Matched { operation, path: Vec::new(), query }
}

fn one<'a>(route: &str, candidates: &[&'a Operation]) -> Result<&'a Operation, Violation> {
    match candidates {
        [only] => Ok(only),
        several => {
            let names: Vec<String> = several
                .iter()
                .take(12)
                .map(|operation| named(&format!("{} {}", operation.method, operation.path)))
                .collect();
            let message = format!("the route {} names {} operations", named(route), several.len());
            Err(Violation::new(Code::UnknownTool, message)
                .expected(any_of(&names))
                .found(named(route))
                .hint(format!("use {}", any_of(&names))))
        }
    }
}

/// What follows where no operation has the words of the route.
const NO_OTHER: &str = "Call one of them only if it does what is asked; if none does, answer: I did nothing, because no \
                        operation does this";

fn unknown(route: &str, operations: &Operations) -> Violation {
    let written = Written::read(route);
    let target = truncate(written.target, 200);
    let violation = Violation::new(Code::UnknownTool, format!("unknown route {}", named(route))).found(named(route));
    if operations.is_empty() {
        return violation.hint("there are no operations");
    }
    // The method is compared after the path: it is short and tells little.
    let labels: Vec<(String, &Operation)> =
        operations.values().map(|operation| (operation.id.clone().unwrap_or_default(), operation)).collect();
    let keys = || labels.iter().flat_map(|(id, operation)| [id.as_str(), operation.path.as_str()]);
    let none_meant = meant(&target, keys(), 1).is_empty();
    let mut names: Vec<String> = Vec::new();
    for key in closest(&target, keys(), 6) {
        for (id, operation) in &labels {
            let name = format!("{} {}", operation.method, operation.path);
            if (id == key || operation.path == key) && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    if let Some(method) = &written.method {
        names.sort_by_key(|name| !name.starts_with(method.as_str()));
    }
    names.truncate(3);
    let names: Vec<String> = names.iter().map(|name| named(name)).collect();
    let nearest = format!("the nearest are {}", names.join(", "));
    violation.expected(any_of(&names)).hint(if none_meant { format!("{nearest}. {NO_OTHER}") } else { nearest })
}
