//! A JSON value that is still arriving, as Python objects that grow in place.

use super::error::CoreResult;
use super::lock::lock;
use super::protocol::DETACH_BYTES;
use super::value::Converter;
use crate::protocol::ReadOptions;
use crate::reply::Value;
use crate::reply::json::{Complete, JsonReader, Progress, Settings};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use std::sync::{Mutex, MutexGuard};

/// The value, read as far as it was asked for.
pub(super) struct GrowingValue(Mutex<State>);

struct State {
    root: Option<Py<PyAny>>,
    /// Taken out while it grows: Python's objects are made without the lock.
    tree: Option<Box<Tree>>,
}

impl GrowingValue {
    /// Any value.
    pub(super) fn any(options: ReadOptions) -> Self {
        Self(Mutex::new(State { root: None, tree: Some(Box::new(Tree::new(options))) }))
    }

    /// An object, empty until it begins.
    pub(super) fn object(py: Python<'_>, options: ReadOptions) -> Self {
        let dict = PyDict::new(py);
        let root = || Some(dict.clone().into_any().unbind());
        let tree = Tree { root: root(), object: Some(dict.clone().unbind()), ..Tree::new(options) };
        Self(Mutex::new(State { root: root(), tree: Some(Box::new(tree)) }))
    }

    /// The value as far as it has come. `more` adds what is new to its text.
    pub(super) fn read(
        &self,
        py: Python<'_>,
        more: impl FnOnce(&mut String) -> CoreResult<()>,
    ) -> CoreResult<Option<Py<PyAny>>> {
        let tree = self.lock()?.tree.take();
        let Some(mut tree) = tree else {
            // It is growing right now, below this call or in another thread.
            return Ok(self.lock()?.root.as_ref().map(|root| root.clone_ref(py)));
        };
        let grown = if tree.ended { Ok(()) } else { more(&mut tree.text).and_then(|()| Ok(tree.grow(py)?)) };
        let root = tree.root.as_ref().map(|root| root.clone_ref(py));
        let mut state = self.lock()?;
        state.tree = Some(tree);
        if state.root.is_none() {
            state.root = root.as_ref().map(|root| root.clone_ref(py));
        }
        drop(state);
        grown.map(|()| root)
    }

    fn lock(&self) -> CoreResult<MutexGuard<'_, State>> {
        lock(&self.0)
    }
}

struct Tree {
    options: ReadOptions,
    text: String,
    /// How much of the text was read.
    read: usize,
    /// Where the value begins, after blanks.
    start: usize,
    machine: Option<JsonReader>,
    /// What is shown of the arrays and objects that are open, outermost first.
    levels: Vec<Level>,
    root: Option<Py<PyAny>>,
    /// The object to fill, until it begins; no other value is shown in its place.
    object: Option<Py<PyDict>>,
    /// Nothing more will be shown.
    ended: bool,
}

impl Tree {
    fn new(options: ReadOptions) -> Self {
        let (text, levels) = (String::new(), Vec::new());
        Self { options, text, read: 0, start: 0, machine: None, levels, root: None, object: None, ended: false }
    }

    /// Reads the text as far as it has come.
    fn grow(&mut self, py: Python<'_>) -> PyResult<()> {
        let unread = self.text.len().saturating_sub(self.read);
        if unread == 0 {
            return Ok(());
        }
        self.read = self.text.len();
        let rest = self.text.get(self.start..).unwrap_or_default();
        self.start += rest.len() - rest.trim_start().len();
        let Some(&first) = self.text.as_bytes().get(self.start) else { return Ok(()) };
        let scalar = !matches!(first, b'{' | b'[');
        if first != b'{' && self.object.is_some() {
            // Text in text, or a fence: what it holds is known at its end.
            self.ended = true;
            return Ok(());
        }
        let settings = || Settings::new(self.options.repairs, self.options.limits);
        let machine = self.machine.get_or_insert_with(|| JsonReader::new(settings(), self.start));
        // A number or literal is published when it is complete.
        let mut run = || machine.run(&self.text, scalar);
        let progress = if unread > DETACH_BYTES { py.detach(run) } else { run() };
        match progress {
            Progress::More => self.show(py),
            Progress::Done => {
                self.ended = true;
                self.complete(py)
            }
            Progress::Failed => {
                self.ended = true;
                self.show(py)
            }
        }
    }

    /// Shows what is new of a value that is open.
    fn show(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(machine) = &self.machine else { return Ok(()) };
        let mut converter = Converter::new(py);
        let mut key = None;
        for (depth, open) in machine.open_containers().enumerate() {
            if depth == self.levels.len() {
                let level = match (&open.members, self.object.take()) {
                    (Complete::Members(_), Some(dict)) => Level::new(Container::Dict(dict)),
                    (Complete::Members(_), None) => Level::new(Container::Dict(PyDict::new(py).unbind())),
                    (Complete::Items(_), _) => Level::new(Container::List(PyList::empty(py).unbind())),
                };
                match self.levels.last() {
                    Some(parent) => parent.put(py, key, level.container.as_any(py))?,
                    None => self.root = Some(level.container.as_any(py).unbind()),
                }
                self.levels.push(level);
            }
            settle(&mut self.levels, depth, open.members, &mut converter)?;
            if open.again {
                return Ok(());
            }
            key = open.key;
        }
        match (machine.open_text(&self.text), self.levels.last_mut()) {
            (Some(pieces), Some(level)) => level.put_open(py, key, pieces),
            _ => Ok(()),
        }
    }

    /// Shows the rest of a value that is complete.
    fn complete(&mut self, py: Python<'_>) -> PyResult<()> {
        // An object may end before it was looked at.
        let Some(value) = self.machine.as_ref().and_then(JsonReader::value) else { return Ok(()) };
        let mut converter = Converter::new(py);
        if let (true, Some(dict)) = (self.levels.is_empty(), self.object.take()) {
            self.levels.push(Level::new(Container::Dict(dict)));
        }
        match Complete::of(value) {
            Some(members) if !self.levels.is_empty() => settle(&mut self.levels, 0, members, &mut converter)?,
            _ => self.root = Some(converter.value(value)?.unbind()),
        }
        self.levels.clear();
        self.machine = None;
        self.text = String::new();
        Ok(())
    }
}

/// One array or object of the value that was open at the last look.
struct Level {
    container: Container,
    /// How many of its members are shown whole.
    done: usize,
    /// The string after them, as far as it is shown.
    open: Option<OpenText>,
}

struct OpenText {
    /// Its key, in an object.
    key: Option<Py<PyString>>,
    text: Py<PyString>,
    /// Its length in UTF-8.
    bytes: usize,
}

enum Container {
    List(Py<PyList>),
    Dict(Py<PyDict>),
}

impl Container {
    fn as_any<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match self {
            Self::List(list) => list.bind(py).clone().into_any(),
            Self::Dict(dict) => dict.bind(py).clone().into_any(),
        }
    }
}

impl Level {
    fn new(container: Container) -> Self {
        Self { container, done: 0, open: None }
    }

    /// Puts a value after the members that are shown whole, in the place of the open string there may be.
    fn put(&self, py: Python<'_>, key: Option<&str>, value: Bound<'_, PyAny>) -> PyResult<()> {
        match (&self.container, &self.open) {
            (Container::Dict(dict), Some(OpenText { key: Some(key), .. })) => dict.bind(py).set_item(key, value),
            (Container::Dict(dict), _) => dict.bind(py).set_item(key.unwrap_or_default(), value),
            (Container::List(list), Some(_)) => list.bind(py).set_item(self.done, value),
            (Container::List(list), None) => list.bind(py).append(value),
        }
    }

    /// Puts a string that is open, in two pieces, if there is more of it than what is shown.
    fn put_open(&mut self, py: Python<'_>, key: Option<&str>, (decoded, plain): (&str, &str)) -> PyResult<()> {
        let bytes = decoded.len() + plain.len();
        let (mut text, shown) = match &self.open {
            Some(open) if open.bytes == bytes => return Ok(()),
            Some(open) => (open.text.bind(py).clone().into_any(), open.bytes),
            None => (PyString::new(py, "").into_any(), 0),
        };
        for more in [decoded.get(shown..), plain.get(shown.saturating_sub(decoded.len())..)] {
            if let Some(more) = more.filter(|more| !more.is_empty()) {
                // Python copies a string quicker than it decodes one.
                text = text.add(PyString::new(py, more))?;
            }
        }
        self.put(py, key, text.clone())?;
        let text = text.cast_into()?.unbind();
        let key = match self.open.take() {
            Some(open) => open.key,
            None => key.map(|key| PyString::new(py, key).unbind()),
        };
        self.open = Some(OpenText { key, text, bytes });
        Ok(())
    }
}

/// Shows the complete members of the value at `depth` that are not shown yet.
fn settle<'a>(
    levels: &mut Vec<Level>,
    depth: usize,
    members: Complete<'a>,
    converter: &mut Converter<'a, '_>,
) -> PyResult<()> {
    while let Some(done) = levels.get(depth).map(|level| level.done)
        && let Some((key, value)) = members.at(done)
    {
        if levels.len() > depth + 1 {
            // The member that was open.
            if let Some(inner) = Complete::of(value) {
                settle(levels, depth + 1, inner, converter)?;
            }
            levels.truncate(depth + 1);
        } else if let Some(level) = levels.get(depth)
            && !matches!((&level.open, value), (Some(open), Value::String(text)) if open.bytes == text.len())
        {
            let object = match value {
                // It is not worth remembering.
                Value::String(text) => PyString::new(converter.py(), text).into_any(),
                other => converter.value(other)?,
            };
            level.put(converter.py(), key, object)?;
        }
        if let Some(level) = levels.get_mut(depth) {
            level.done += 1;
            level.open = None;
        }
    }
    Ok(())
}
