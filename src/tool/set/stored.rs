//! Tools as they are written in a log.

use super::{ToolSet, ToolSetError};
use crate::tool::openapi::{Api, Catalogue};
use crate::tool::spec::ToolSpec;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::sync::Arc;

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Stored<'a> {
    Tools(Vec<&'a ToolSpec>),
    Openapi(&'a Api),
    OpenapiBeside { document: &'a Api, tools: Vec<&'a ToolSpec> },
    Documents { documents: &'a [Arc<Api>], tools: Vec<&'a ToolSpec> },
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Loaded {
    Tools(Vec<ToolSpec>),
    Openapi(Box<RawValue>),
    OpenapiBeside { document: Box<RawValue>, tools: Vec<ToolSpec> },
    Documents { documents: Vec<Box<RawValue>>, tools: Vec<ToolSpec> },
}

impl Serialize for ToolSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tools: Vec<&ToolSpec> = self.plain().collect();
        let documents = self.documents.as_deref().map_or(&[] as &[Arc<Api>], Catalogue::apis);
        let stored = match documents {
            [] => Stored::Tools(tools),
            [document] if tools.is_empty() => Stored::Openapi(document),
            [document] => Stored::OpenapiBeside { document, tools },
            documents => Stored::Documents { documents, tools },
        };
        stored.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (documents, tools) = match Loaded::deserialize(deserializer)? {
            Loaded::Tools(tools) => (Vec::new(), tools),
            Loaded::Openapi(document) => (vec![document], Vec::new()),
            Loaded::OpenapiBeside { document, tools } => (vec![document], tools),
            Loaded::Documents { documents, tools } => (documents, tools),
        };
        let documents = documents.iter().map(|raw| Api::from_raw(raw)).collect::<Result<_, _>>();
        let set = documents.map_err(ToolSetError::from).and_then(|documents| Self::with_documents(documents, tools));
        set.map_err(D::Error::custom)
    }
}
