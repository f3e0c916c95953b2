//! JSON values to Python objects in one pass, and back as JSON text.

use crate::reply::{Number, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyNone, PyString};
use serde_json::Value as Json;

/// The value as `None`, `bool`, `int`, `float`, `str`, `list` or `dict`.
pub(super) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Converter::new(py).value(value)
}

/// Makes Python objects, each short string once.
pub(super) struct Converter<'a, 'py> {
    py: Python<'py>,
    texts: Texts<'a, 'py>,
}

impl<'a, 'py> Converter<'a, 'py> {
    pub(super) fn new(py: Python<'py>) -> Self {
        Self { py, texts: Texts::default() }
    }

    pub(super) fn py(&self) -> Python<'py> {
        self.py
    }

    pub(super) fn value(&mut self, value: &'a Value) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        Ok(match value {
            Value::Null => PyNone::get(py).to_owned().into_any(),
            Value::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any(),
            Value::Number(number) => number_to_python(py, number)?,
            Value::String(text) => self.texts.get(py, text).into_any(),
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
                    dict.set_item(self.texts.get(py, key), item)?;
                }
                dict.into_any()
            }
        })
    }
}

/// Short strings that were met before: keys, and values that come from a small set.
#[derive(Default)]
struct Texts<'a, 'py> {
    slots: Vec<Option<(&'a str, Bound<'py, PyString>)>>,
    /// Texts asked for before there were slots.
    asked: usize,
}

impl<'a, 'py> Texts<'a, 'py> {
    const BITS: u32 = 7;
    const LONGEST: usize = 24;
    /// So many are made each for itself: making the slots costs more.
    const FEW: usize = 24;

    fn get(&mut self, py: Python<'py>, text: &'a str) -> Bound<'py, PyString> {
        if text.len() > Self::LONGEST {
            return PyString::new(py, text);
        }
        if self.slots.is_empty() {
            self.asked += 1;
            if self.asked <= Self::FEW {
                return PyString::new(py, text);
            }
            self.slots.resize(1 << Self::BITS, None);
        }
        let word = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |word| u64::from_le_bytes(*word));
        let bytes = text.as_bytes();
        let ends = match bytes.len() {
            8.. => word(bytes.first_chunk()) ^ word(bytes.last_chunk()).rotate_left(29),
            _ => bytes.iter().fold(0, |ends, byte| ends << 8 | u64::from(*byte)),
        };
        // The high bits of the product depend on all of the others.
        let hash = (ends ^ bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - Self::BITS);
        match self.slots.get_mut(hash as usize) {
            Some(Some((known, object))) if *known == text => object.clone(),
            other => {
                let object = PyString::new(py, text);
                if let Some(other) = other {
                    *other = Some((text, object.clone()));
                }
                object
            }
        }
    }
}

/// The items of a message as a list of dicts.
pub(super) fn items_to_python(py: Python<'_>, items: &[Json]) -> PyResult<Py<PyList>> {
    let list = PyList::empty(py);
    for item in items {
        list.append(json_to_python(py, item)?)?;
    }
    Ok(list.unbind())
}

fn json_to_python<'py>(py: Python<'py>, value: &Json) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Json::Null => PyNone::get(py).to_owned().into_any(),
        Json::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Json::Number(number) => number_to_python(py, &Number::from_valid(&number.to_string()))?,
        Json::String(text) => PyString::new(py, text).into_any(),
        Json::Array(items) => items_to_python(py, items)?.into_bound(py).into_any(),
        Json::Object(object) => {
            let dict = PyDict::new(py);
            for (key, item) in object {
                // Its keys are those of few kinds of items.
                dict.set_item(PyString::intern(py, key), json_to_python(py, item)?)?;
            }
            dict.into_any()
        }
    })
}

fn number_to_python<'py>(py: Python<'py>, number: &Number) -> PyResult<Bound<'py, PyAny>> {
    let text = number.as_str();
    if !number.is_integer() {
        return Ok(PyFloat::new(py, text.parse().unwrap_or(f64::NAN)).into_any());
    }
    match text.parse::<i64>() {
        Ok(small) => Ok(small.into_pyobject(py)?.into_any()),
        // By default Python reads no integer of more than 4,300 digits.
        Err(_) => {
            py.get_type::<PyInt>().call1((text,)).or_else(|_| py.import("decimal")?.getattr("Decimal")?.call1((text,)))
        }
    }
}
