//! Results that come from outside.

use super::is_false;
use crate::reply::Value;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

/// What is known of results that come from outside. It stands in the tool, and in each ticket.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct External {
    /// JSON Schema of a result; any JSON value without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<Json>,
    /// Whether the call asks a question: its arguments `choices` and `several` say what the result may be.
    #[serde(default, skip_serializing_if = "is_false")]
    pub asks: bool,
    /// Seconds from the opening of a ticket until it fails without a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

impl External {
    /// JSON Schema of the result of a call with these final arguments; `None` if it may be any JSON value.
    pub fn answers(&self, arguments: Option<&Value>) -> Option<Json> {
        if !self.asks {
            return self.returns.clone();
        }
        let given = |name: &str| arguments?.as_object()?.get(name);
        let one = match given("choices").map(Value::to_json).and_then(|json| serde_json::from_str::<Json>(&json).ok()) {
            Some(Json::Array(choices)) if !choices.is_empty() => json!({"enum": choices}),
            _ => json!({"type": "string"}),
        };
        let several = matches!(given("several"), Some(Value::Bool(true)));
        Some(if several { json!({"type": "array", "items": one}) } else { one })
    }
}
