use super::{ToolSet, ToolSetError};
use crate::reply::Code;
use crate::reply::Value;
use crate::reply::json_text::parse;
use crate::tool::ToolSpec;
use serde_json::json;

#[expect(clippy::needless_pass_by_value, reason = "the tests write the schema in place")]
pub(crate) fn tool(name: &str, description: &str, parameters: serde_json::Value) -> ToolSpec {
    let text = json!({"name": name, "description": description, "parameters": parameters});
    serde_json::from_value(text).unwrap()
}

pub(crate) fn set() -> ToolSet {
    ToolSet::new(vec![
        tool(
            "calculator",
            "Evaluate an arithmetic expression.",
            json!({"type": "object", "title": "Calculator", "properties": {
                "expression": {"type": "string", "description": "For example \"25 * 4\"."},
            }, "required": ["expression"], "additionalProperties": false}),
        ),
        tool(
            "search",
            "Search the web.\n\nResults come newest first.",
            json!({"type": "object", "properties": {
                "query": {"type": "string", "description": "What to look for."},
                "max_results": {"type": "integer", "minimum": 1, "maximum": 50, "default": 5},
                "order": {"enum": ["asc", "desc"]},
                "filter": {"type": "object", "properties": {
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "since": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                }, "required": ["tags"], "additionalProperties": false},
            }, "required": ["query"]}),
        ),
        tool("now", "The time.", json!({"type": "object", "properties": {}})),
    ])
    .unwrap()
}

fn refused(name: &str, arguments: &str) -> (Code, String) {
    let set = set();
    let violation = set.check(set.get(name).unwrap(), &parse(arguments).unwrap()).unwrap_err();
    (violation.code, violation.message)
}

#[test]
fn sets_are_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&set());
}

#[test]
fn bad_tools_are_refused() {
    let schema = json!({"type": "object"});
    for (tools, expected) in [
        (
            vec![tool("a", "", schema.clone()), tool("a", "", schema.clone())],
            "two tools are named 'a': give one of them another name",
        ),
        (
            vec![tool("a b", "", schema.clone())],
            "\"a b\" cannot be a tool's name: it must have 1 to 128 characters, none of them blank",
        ),
        (
            vec![tool("", "", schema)],
            "\"\" cannot be a tool's name: it must have 1 to 128 characters, none of them blank",
        ),
        (
            vec![tool("a", "", json!({"type": "array"}))],
            "the parameters of tool 'a' must be a JSON Schema of an object: its type is \"array\"",
        ),
        (vec![tool("a", "", json!(true))], "the parameters of tool 'a' must be a JSON Schema of an object: got true"),
    ] {
        assert_eq!(ToolSet::new(tools).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_schema_that_is_none_is_found_when_compiled() {
    let set = ToolSet::new(vec![tool("a", "", json!({"type": "object", "minProperties": "5"}))]).unwrap();
    assert!(matches!(set.compile(), Err(ToolSetError::Parameters { .. })));
    let violation = set.check(set.get("a").unwrap(), &Value::Null).unwrap_err();
    assert!(
        violation.message.starts_with("the tool cannot be called, its schema is at fault: "),
        "{}",
        violation.message
    );
}

#[test]
fn an_unknown_tool_comes_with_the_nearest() {
    let set = set();
    assert_eq!(set.resolve("search").unwrap().name, "search");
    let violation = set.resolve("web_search").unwrap_err();
    assert_eq!(violation.code, Code::UnknownTool);
    assert_eq!(violation.message, "unknown tool 'web_search'");
    assert_eq!(violation.hint.as_deref(), Some("did you mean 'search'?"));
    assert_eq!(set.resolve("Search").unwrap_err().hint.as_deref(), Some("did you mean 'search'?"));
    assert_eq!(set.resolve("x").unwrap_err().hint.as_deref(), Some(super::NO_SUCH_TOOL));
    let none = ToolSet::new(Vec::new()).unwrap();
    assert_eq!(none.resolve("x").unwrap_err().hint.as_deref(), Some("there are no tools"));
}

#[test]
fn every_problem_is_named() {
    for (name, arguments, code, message) in [
        ("search", "{}", Code::MissingArgument, "missing required argument 'query' (string)"),
        (
            "calculator",
            r#"{"formula": "1"}"#,
            Code::UnknownArgument,
            "unknown argument 'formula': did you mean 'expression'?; missing required argument 'expression' (string)",
        ),
        (
            "search",
            r#"{"query": "x", "maxResults": 5}"#,
            Code::UnknownArgument,
            "unknown argument 'maxResults': did you mean 'max_results'?",
        ),
        (
            "search",
            r#"{"query": "x", "zzz": 5}"#,
            Code::UnknownArgument,
            "unknown argument 'zzz': there is 'query', 'max_results', 'order', 'filter'",
        ),
        ("now", r#"{"zone": "x"}"#, Code::UnknownArgument, "unknown argument 'zone': there are none"),
        (
            "search",
            r#"{"query": 5, "max_results": "five"}"#,
            Code::InvalidArgument,
            "'query' must be a string: got the integer 5; 'max_results' must be an integer: got the string \"five\"",
        ),
        (
            "search",
            r#"{"query": "x", "max_results": 51, "order": "up"}"#,
            Code::InvalidArgument,
            "'max_results' must be at most 50: got the integer 51; 'order' must be one of \"asc\" or \"desc\": got the string \"up\"",
        ),
        (
            "search",
            r#"{"query": "x", "filter": {"tag": [], "since": "now"}}"#,
            Code::InvalidArgument,
            "'filter.since' must be an integer or null: got the string \"now\"; 'filter' has no property 'tag': did you mean 'tags'?; 'filter' lacks the required property 'tags' ([str])",
        ),
        (
            "search",
            r#"{"query": "x", "filter": {"tags": ["a", null]}}"#,
            Code::InvalidArgument,
            "'filter.tags[1]' must be a string: got null",
        ),
        (
            "search",
            r#"{"query": null, "max_results": null}"#,
            Code::InvalidArgument,
            "'query' must be a string: got null",
        ),
        ("search", "[]", Code::InvalidArgument, "the arguments must be an object: got an empty array"),
        ("search", r#""query""#, Code::InvalidArgument, "the arguments must be an object: got the string \"query\""),
    ] {
        assert_eq!(refused(name, arguments), (code, message.to_owned()), "{arguments}");
    }
}

#[test]
fn a_violation_shows_the_schema_of_its_tool_alone() {
    let set = set();
    let violation = set.check(set.get("calculator").unwrap(), &Value::Null).unwrap_err();
    assert_eq!(violation.pointer.as_deref(), Some("/expression"));
    assert_eq!(
        violation.expected.as_deref(),
        Some(
            r#"{"type":"object","properties":{"expression":{"type":"string","description":"For example \"25 * 4\"."}},"required":["expression"],"additionalProperties":false}"#
        )
    );
}

#[test]
fn hostile_sizes_stay_short() {
    let huge = "x".repeat(1 << 20);
    let long = "n".repeat(100);
    let names: Vec<String> = (0..5_000).map(|number| format!("\"{long}{number}\":1,")).collect();
    let names = format!("{{{}\"query\":1}}", names.concat());
    for arguments in
        [format!(r#"{{"query": 1, "{huge}": 1}}"#), format!(r#"{{"query": "x", "order": "{huge}"}}"#), names]
    {
        let set = set();
        let violation = set.check(set.get("search").unwrap(), &parse(&arguments).unwrap()).unwrap_err();
        assert!(violation.message.len() < 1_500, "{}", violation.message.len());
        assert!(violation.found.unwrap().len() < 200);
    }
    assert!(set().resolve(&huge).unwrap_err().message.len() < 200);
}

#[test]
fn numbers_keep_their_digits() {
    let set = set();
    let text = r#"{"query":"x","filter":{"tags":[],"since":123456789012345678901234567890}}"#;
    let checked = set.check(set.get("search").unwrap(), &parse(text).unwrap()).unwrap();
    assert_eq!(Value::Object(checked.arguments).to_json(), text);
    assert!(checked.coerced.is_empty());
}

#[test]
fn references_to_other_calls_are_let_through() {
    let set = set();
    let search = set.get("search").unwrap();
    let arguments = parse(r#"{"query": "x", "max_results": "$a", "filter": {"tags": "$b"}}"#).unwrap();
    assert!(set.check(search, &arguments).is_err());
    let except = ["/max_results".to_owned(), "/filter/tags".to_owned()];
    assert_eq!(set.check_except(search, &arguments, &except).unwrap().arguments.len(), 3);
    let arguments = parse(r#"{"max_results": "$a", "order": 1}"#).unwrap();
    let violation = set.check_except(search, &arguments, &except).unwrap_err();
    assert_eq!(
        violation.message,
        "missing required argument 'query' (string); 'order' must be one of \"asc\" or \"desc\": got the integer 1"
    );
}
