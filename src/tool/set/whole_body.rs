//! A payload that is the whole body of a request, where the body is the only thing that an operation takes and is no object.

use super::ToolSet;
use crate::reply::json_text;
use crate::reply::{Code, Object, Value, Violation};
use crate::tool::openapi::whole_body;
use crate::tool::render;
use crate::tool::spec::ToolSpec;
use crate::tool::types::{Schema, Types};
use serde_json::Value as Json;
use std::sync::Arc;

impl ToolSet {
    /// The arguments of a call by its route: a payload that is the whole body stands under the name of the body.
    ///
    /// # Errors
    /// `invalid_argument` where a text may be the body as well as the JSON of an object with it.
    pub fn with_whole_body(&self, tool: &ToolSpec, payload: Arc<Value>) -> Result<Arc<Value>, Violation> {
        if matches!(&*payload, Value::Object(_) | Value::Null) {
            return Ok(payload);
        }
        let Some(name) = self.whole_body(tool) else { return Ok(payload) };
        let root = Schema::root(&tool.parameters);
        if let Value::String(text) = &*payload {
            let is_text = root.property(name).is_some_and(|body| body.types().contains(Types::STRING));
            let required = root.required_names().contains(&name);
            match json_text::parse(text) {
                Some(Value::Object(object)) if is_text && object.contains_key(name) => {
                    return Err(two_readings(tool, name));
                }
                // The arguments as text, as everywhere.
                Some(Value::Object(_)) if !is_text => return Ok(payload),
                Some(Value::Null) if !is_text || !required => return Ok(payload),
                None if text.trim().is_empty() && (!is_text || !required) => return Ok(payload),
                _ => {}
            }
        }
        let body: Object = [(name, (*payload).clone())].into_iter().collect();
        Ok(Arc::new(Value::Object(body)))
    }

    /// The schemas of payloads that are a whole body.
    pub(crate) fn whole_body_schemas<'a>(&self, tool: &'a ToolSpec) -> Vec<&'a Json> {
        let own = |name: &str| tool.parameters.get("properties")?.get(name);
        let Some(schema) = self.whole_body(tool).and_then(own) else { return Vec::new() };
        let root = Schema::root(&tool.parameters);
        let is_plain = |schema: &&Json| {
            let types = root.at(schema).types();
            !types.contains(Types::OBJECT) && !types.contains(Types::NULL)
        };
        if is_plain(&schema) {
            return vec![schema];
        }
        // The content of a file is a text, or an object that says more about it.
        let branches = schema.get("anyOf").and_then(Json::as_array);
        branches.into_iter().flatten().filter(is_plain).collect()
    }

    /// The name of the body, where a call takes nothing else.
    fn whole_body(&self, tool: &ToolSpec) -> Option<&'static str> {
        let (catalogue, operation) = self.operation(&tool.name)?;
        whole_body(catalogue, operation)
    }
}

fn two_readings(tool: &ToolSpec, name: &str) -> Violation {
    let message = format!("expected the body as an object with '{name}', or as text: got text that may be either");
    Violation::new(Code::InvalidArgument, message)
        .expected(render::expected(tool))
        .hint(format!("write the payload as an object: {{\"{name}\": \"...\"}}"))
}
