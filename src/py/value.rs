//! JSON values to Python objects in one pass, and back as JSON text.

use crate::reply::{Number, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyNone, PyString};

/// The value as `None`, `bool`, `int`, `float`, `str`, `list` or `dict`.
pub(super) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Converter { py, keys: Keys::default() }.value(value)
}

struct Converter<'a, 'py> {
    py: Python<'py>,
    keys: Keys<'a, 'py>,
}

impl<'a, 'py> Converter<'a, 'py> {
    fn value(&mut self, value: &'a Value) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        Ok(match value {
            Value::Null => PyNone::get(py).to_owned().into_any(),
            Value::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any(),
            Value::Number(number) => number_to_python(py, number)?,
            Value::String(text) => PyString::new(py, text).into_any(),
            Value::Array(items) => {
                let list = PyList::empty(py);
                for item in items {
                    list.append(self.value(item)?)?;
                }
                list.into_any()
            }
            Value::Object(object) => {
                let dict = PyDict::new(py);
                for (key, item) in object.iter() {
                    let item = self.value(item)?;
                    dict.set_item(self.keys.get(py, key), item)?;
                }
                dict.into_any()
            }
        })
    }
}

/// Keys that were met before: the objects of an array have the same ones.
#[derive(Default)]
struct Keys<'a, 'py>(Vec<Option<(&'a str, Bound<'py, PyString>)>>);

impl<'a, 'py> Keys<'a, 'py> {
    const SLOTS: usize = 64;

    fn get(&mut self, py: Python<'py>, key: &'a str) -> Bound<'py, PyString> {
        if self.0.is_empty() {
            self.0.resize(Self::SLOTS, None);
        }
        let byte = |at: usize| key.as_bytes().get(at).copied().map_or(0, usize::from);
        let slot = key.len() ^ byte(0) ^ byte(key.len() / 2) << 2 ^ byte(key.len().wrapping_sub(1)) << 1;
        match self.0.get_mut(slot % Self::SLOTS) {
            Some(Some((known, text))) if *known == key => text.clone(),
            other => {
                let text = PyString::new(py, key);
                if let Some(other) = other {
                    *other = Some((key, text.clone()));
                }
                text
            }
        }
    }
}

fn number_to_python<'py>(py: Python<'py>, number: &Number) -> PyResult<Bound<'py, PyAny>> {
    let text = number.as_str();
    if !number.is_integer() {
        return Ok(PyFloat::new(py, text.parse().unwrap_or(f64::NAN)).into_any());
    }
    match text.parse::<i64>() {
        Ok(small) => Ok(small.into_pyobject(py)?.into_any()),
        Err(_) => py.get_type::<PyInt>().call1((text,)),
    }
}
