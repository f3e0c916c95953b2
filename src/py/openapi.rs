//! `OpenAPI` documents: their operations, the requests that call them, their responses.

use super::error::{CoreResult, value};
use super::options;
use super::rows::PyHttpRequest;
use crate::reply::json::{JsonReader, Progress, Settings};
use crate::reply::{ReadLimits, Value};
use crate::tool::openapi::{Api, Credential, Selection};
use pyo3::prelude::*;
use serde_json::value::RawValue;
use std::sync::Arc;

/// Brackets inside one another in a response, as in a reply: Python reads few more.
const DEPTH: usize = 128;

/// A document of version 3.0, 3.1 or 3.2.
#[pyclass(name = "Document", module = "callslip._core", frozen)]
pub(super) struct PyDocument {
    pub(super) api: Arc<Api>,
}

/// What proves who calls: a token, or user and password.
#[derive(FromPyObject)]
enum Secret {
    Token(String),
    Basic(String, String),
}

impl From<Secret> for Credential {
    fn from(secret: Secret) -> Self {
        match secret {
            Secret::Token(token) => Self::Token(token),
            Secret::Basic(user, password) => Self::Basic { user, password },
        }
    }
}

#[pymethods]
impl PyDocument {
    /// Reads a document, which is JSON or YAML in UTF-8. Raises `ToolError`.
    #[new]
    fn new(py: Python<'_>, text: &[u8]) -> CoreResult<Self> {
        let api = py.detach(|| Api::read(text))?;
        Ok(Self { api: Arc::new(api) })
    }

    /// What the core knows of the tool for an operation, as JSON text.
    fn spec(&self, name: &str) -> CoreResult<String> {
        Ok(serde_json::to_string(&self.api.spec(name))?)
    }

    /// The names of its operations, `METHOD /path`, in their order.
    fn names(&self) -> Vec<String> {
        self.api.names().map(str::to_owned).collect()
    }

    /// The names of the operations that `METHOD /path` or an `operationId` means.
    fn named(&self, key: &str) -> Vec<String> {
        self.api.named(key).into_iter().map(str::to_owned).collect()
    }

    /// The nearest names and ids to one that is none.
    fn nearest(&self, key: &str) -> Vec<String> {
        self.api.nearest(key).into_iter().map(str::to_owned).collect()
    }

    /// The names of the operations that fit. Raises `ToolError`.
    fn select(&self, include: Vec<String>, tags: Vec<String>, read_only: bool) -> CoreResult<Vec<String>> {
        let selection = Selection { include, tags, read_only };
        let names = self.api.select(&selection)?;
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    /// The same document with these operations only. `traits` is JSON text: by name, what the program says of some.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn only(&self, py: Python<'_>, names: Vec<String>, traits: &str) -> CoreResult<Self> {
        let traits = options::traits(traits)?;
        Ok(Self { api: py.detach(|| self.api.only(&names, &traits)) })
    }

    /// The same, marked with what `whole` has beside it and the address of its server where the document's is not used.
    #[pyo3(signature = (whole, address))]
    fn marked(&self, py: Python<'_>, whole: &Self, address: Option<&str>) -> Self {
        Self { api: py.detach(|| self.api.marked(&whole.api, address)) }
    }

    /// The operations whose path has placeholders that no parameter declares, with these.
    fn undeclared(&self, py: Python<'_>) -> Vec<(String, Vec<String>)> {
        let undeclared = py.detach(|| self.api.undeclared());
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        undeclared.into_iter().map(|(name, names)| (name.to_owned(), owned(names))).collect()
    }

    /// Its text as JSON.
    fn to_json(&self) -> CoreResult<String> {
        Ok(serde_json::to_string(&*self.api)?)
    }

    /// Its title; empty where it has none.
    fn title(&self) -> String {
        self.api.title().to_owned()
    }

    /// The names of its security schemes.
    fn schemes(&self) -> Vec<String> {
        self.api.schemes().into_iter().map(str::to_owned).collect()
    }

    /// The schemes, of those that there are secrets for, that an operation is called with.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn credentials(&self, name: &str, available: Vec<String>) -> Vec<String> {
        self.api.credentials(name, &available)
    }

    /// The secrets, by scheme, that no operation would be sent.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 gives it")]
    fn unsent(&self, available: Vec<String>) -> Vec<String> {
        self.api.unsent(&available)
    }

    /// The operations, and the paths, that can't be read whole, each with the reference in it that leads nowhere.
    fn unreadable(&self, py: Python<'_>) -> Vec<(String, String)> {
        py.detach(|| self.api.unreadable())
    }

    /// The faults of its schemas, in words.
    fn faults(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| self.api.faults())
    }

    /// The server that the whole document names first.
    fn default_server(&self) -> Option<String> {
        self.api.default_server()
    }

    /// What is odd about the document, in words.
    fn notes(&self) -> Vec<String> {
        self.api.notes.clone()
    }

    /// The server of an operation as the document says it. Raises `ValueError`.
    fn server(&self, name: &str) -> CoreResult<Option<String>> {
        Ok(self.api.server(name)?)
    }

    /// The request that calls an operation with arguments given as JSON text. Raises `ValueError`.
    fn request(
        &self,
        py: Python<'_>,
        name: &str,
        arguments: &str,
        server: &str,
        secrets: Vec<(String, Secret)>,
    ) -> CoreResult<PyHttpRequest> {
        let arguments: Value = serde_json::from_str(arguments)?;
        let Value::Object(arguments) = arguments else {
            return Err(value("expected the arguments as an object"));
        };
        let secrets: Vec<(String, Credential)> =
            secrets.into_iter().map(|(scheme, secret)| (scheme, secret.into())).collect();
        let planned = self.api.request(name, &arguments, server, &secrets)?;
        Ok(PyHttpRequest::new(py, planned))
    }

    /// What of a JSON response is not as the document says.
    fn check_response(&self, py: Python<'_>, name: &str, status: u16, media: &str, body: &str) -> Vec<String> {
        py.detach(|| self.api.check_response(name, status, media, body))
    }
}

/// JSON or YAML text as JSON text. Raises `ToolError`.
#[pyfunction]
pub(super) fn yaml_to_json(py: Python<'_>, text: &[u8]) -> CoreResult<String> {
    Ok(py.detach(|| Api::to_json(text))?)
}

/// A response's text as compact JSON with its numbers as they were spelled; `None` where it is no JSON, or nested too
/// deep.
#[pyfunction]
pub(super) fn json_text(py: Python<'_>, text: &str) -> Option<String> {
    py.detach(|| {
        let raw: &RawValue = serde_json::from_str(text).ok()?;
        let limits = ReadLimits { depth: DEPTH, ..ReadLimits::none() };
        let mut machine = JsonReader::new(Settings { limits, ..Settings::plain() }, 0);
        (machine.run(raw.get(), true) == Progress::Done).then(|| machine.into_value().0.to_json())
    })
}
