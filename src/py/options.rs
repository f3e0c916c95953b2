//! Options that Python passes as JSON. A name that is not known here is an error: an option that only Python knows would
//! do nothing, silently. Logs and stores are read by the types themselves, which take names of other versions.

use super::error::{CoreResult, value};
use crate::reply::ReadLimits;
use crate::run::Limits;
use crate::ticket::External;
use crate::tool::openapi::Traits;
use crate::tool::{Effect, LEVEL, Level, ToolKind, ToolSpec};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Options of this kind from JSON text.
pub(super) fn read<T: DeserializeOwned>(kind: &str, json: &str) -> CoreResult<T> {
    serde_json::from_str(json).map_err(|cause| value(format!("expected {kind}: got {cause}")))
}

/// Limits from JSON text of the program.
pub(super) fn limits(json: &str) -> CoreResult<Limits> {
    read::<GivenLimits>("limits", json).map(Limits::from)
}

/// Limits as a log has them.
fn kept_limits(json: &str) -> CoreResult<Limits> {
    read("limits of a log", json)
}

/// The limits of several runs, as their logs have them.
pub(super) fn all_kept_limits(limits: &[String]) -> CoreResult<Vec<Limits>> {
    limits.iter().map(|json| kept_limits(json)).collect()
}

/// The limits of one run: those that the program gives, or those that a log has.
pub(super) fn own_limits(given: Option<&str>, kept: Option<&str>) -> CoreResult<Option<Limits>> {
    given.map(limits).or_else(|| kept.map(kept_limits)).transpose()
}

/// One tool from JSON text of the program.
pub(super) fn tool(json: &str) -> CoreResult<ToolSpec> {
    let mut tool = read::<GivenTool>("the specification of a tool", json).map(ToolSpec::from)?;
    tool.take_levels().map_err(|(argument, mark)| {
        let name = &tool.name;
        value(format!(
            "expected 'any', 'stated', 'strict' or 'trusted' in {LEVEL} of the argument '{argument}' of '{name}': got {mark}"
        ))
    })?;
    Ok(tool)
}

/// What the program knows of a result that comes from outside.
pub(super) fn external(json: &str) -> CoreResult<External> {
    read::<GivenExternal>("what is known of a result", json).map(External::from)
}

/// What the program says of operations, by their names.
pub(super) fn traits(json: &str) -> CoreResult<Traits> {
    const KIND: &str = "what is said of operations";
    read::<BTreeMap<String, GivenTraits>>(KIND, json)?;
    read(KIND, json)
}

/// `Limits` with `ReadLimits`, by the names that logs have too.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct GivenLimits {
    steps: Option<u32>,
    tickets: Option<u32>,
    open_tickets: Option<u32>,
    seconds: Option<f64>,
    runs: Option<u32>,
    depth: Option<u32>,
    tokens: Option<u64>,
    cost: Option<f64>,
    reply_bytes: usize,
    json_depth: usize,
    json_digits: usize,
    json_values: usize,
    json_key_bytes: usize,
    json_blanks: usize,
    json_repairs: usize,
    result_bytes: usize,
    max_violations: u32,
    max_repeats: u32,
}

impl Default for GivenLimits {
    fn default() -> Self {
        let Limits { turns, tickets, open_tickets, seconds, runs, depth, tokens, cost, read, .. } = Limits::default();
        let Limits { result_bytes, max_violations, max_repeats, .. } = Limits::default();
        let ReadLimits { bytes, depth: json_depth, digits, values, key_bytes, blanks, repairs } = read;
        Self {
            steps: turns,
            tickets,
            open_tickets,
            seconds,
            runs,
            depth,
            tokens,
            cost,
            reply_bytes: bytes,
            json_depth,
            json_digits: digits,
            json_values: values,
            json_key_bytes: key_bytes,
            json_blanks: blanks,
            json_repairs: repairs,
            result_bytes,
            max_violations,
            max_repeats,
        }
    }
}

impl From<GivenLimits> for Limits {
    fn from(given: GivenLimits) -> Self {
        Self {
            turns: given.steps,
            tickets: given.tickets,
            open_tickets: given.open_tickets,
            seconds: given.seconds,
            runs: given.runs,
            depth: given.depth,
            tokens: given.tokens,
            cost: given.cost,
            read: ReadLimits {
                bytes: given.reply_bytes,
                depth: given.json_depth,
                digits: given.json_digits,
                values: given.json_values,
                key_bytes: given.json_key_bytes,
                blanks: given.json_blanks,
                repairs: given.json_repairs,
            },
            result_bytes: given.result_bytes,
            max_violations: given.max_violations,
            max_repeats: given.max_repeats,
        }
    }
}

/// `External`.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct GivenExternal {
    returns: Option<Json>,
    asks: bool,
    timeout: Option<f64>,
}

impl From<GivenExternal> for External {
    fn from(given: GivenExternal) -> Self {
        let GivenExternal { returns, asks, timeout } = given;
        Self { returns, asks, timeout }
    }
}

/// `ToolSpec`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is one option of the Python face")]
struct GivenTool {
    name: String,
    description: String,
    parameters: Json,
    #[serde(default)]
    reads: BTreeMap<String, String>,
    #[serde(default)]
    kind: ToolKind,
    #[serde(default)]
    effect: Effect,
    #[serde(default)]
    readonly: bool,
    #[serde(default)]
    reconciles: bool,
    #[serde(default)]
    needs_approval: bool,
    #[serde(default)]
    checks_approval: bool,
    #[serde(default)]
    queue: Option<String>,
    #[serde(default)]
    repeatable: bool,
    #[serde(default)]
    untrusted: bool,
    #[serde(default)]
    external: Option<GivenExternal>,
    #[serde(default)]
    values: BTreeMap<String, Level>,
    #[serde(default)]
    asks_untrusted: bool,
}

impl From<GivenTool> for ToolSpec {
    fn from(given: GivenTool) -> Self {
        Self {
            name: given.name,
            description: given.description,
            parameters: given.parameters,
            reads: given.reads,
            kind: given.kind,
            effect: given.effect,
            readonly: given.readonly,
            reconciles: given.reconciles,
            needs_approval: given.needs_approval,
            checks_approval: given.checks_approval,
            queue: given.queue,
            repeatable: given.repeatable,
            untrusted: given.untrusted,
            external: given.external.map(|external| Arc::new(external.into())),
            values: given.values,
            asks_untrusted: given.asks_untrusted,
        }
    }
}

/// The members of `x-callslip` that the program may set. They are only checked here.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the names and types are checked")]
#[expect(clippy::struct_excessive_bools, reason = "each is one option of the Python face")]
struct GivenTraits {
    #[serde(default)]
    effect: Effect,
    #[serde(default)]
    readonly: bool,
    #[serde(default)]
    repeatable: bool,
    #[serde(default)]
    untrusted: bool,
    #[serde(default)]
    needs_approval: bool,
    #[serde(default)]
    checks_approval: bool,
}
