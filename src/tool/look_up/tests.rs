use crate::reply::{Code, Value};
use crate::tool::set::tests::{set, tool};
use crate::tool::{Budget, Layout, ToolSet};
use serde_json::{Value as Json, json};

const SHOP: &str = r##"{"openapi": "3.0.3", "paths": {
  "/orders": {
    "get": {"operationId": "listOrders", "summary": "List orders", "tags": ["orders"],
            "parameters": [{"name": "status", "in": "query", "schema": {"type": "string"}}]},
    "post": {"operationId": "placeOrder", "summary": "Place an order", "tags": ["orders"], "description": "Pays with a card.",
             "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}}},
             "responses": {"201": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}}}}}
  },
  "/orders/{id}": {"get": {"summary": "One order", "tags": ["orders"]}, "delete": {"operationId": "cancelOrder", "summary": "Cancel an order"}},
  "/customers/{id}/addresses": {"get": {"summary": "Addresses of a customer"}}
}, "components": {"schemas": {"Order": {"type": "object", "required": ["item"], "properties": {
  "item": {"type": "string", "description": "What."}, "count": {"type": "integer", "default": 1}, "after": {"$ref": "#/components/schemas/Order"}
}}}}}"##;

fn shop() -> ToolSet {
    ToolSet::from_openapi(SHOP).unwrap()
}

fn found(tools: &ToolSet, query: &str) -> Vec<String> {
    let names = |line: &String| line.split('(').next().unwrap_or_default().to_owned();
    tools.search(query, true).tools.iter().map(names).collect()
}

#[test]
fn tools_are_found_by_what_is_said_of_them() {
    let tools = shop();
    for (query, expected) in [
        ("place an order", "POST /orders"),
        ("card", "POST /orders"),
        ("cancelOrder", "DELETE /orders/{id}"),
        ("cancel", "DELETE /orders/{id}"),
        ("address", "GET /customers/{id}/addresses"),
        ("adresses of custmers", "GET /customers/{id}/addresses"),
        ("DELETE /orders/5", "DELETE /orders/{id}"),
        ("LIST ORDERS", "GET /orders"),
        ("cust", "GET /customers/{id}/addresses"),
    ] {
        assert_eq!(found(&tools, query).first().map(String::as_str), Some(expected), "{query}");
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&tools.search("orders", true)).unwrap());
}

#[test]
fn a_search_that_finds_nothing_says_what_there_is() {
    let nothing = shop().search("zeppelin", true);
    assert_eq!((nothing.tools.len(), nothing.more), (0, 0));
    assert_eq!(nothing.hint.as_deref(), Some("use other words; there are tools of orders, customers"));
    assert!(shop().search("", true).tools.is_empty());
    assert!(shop().search("日本", true).tools.is_empty());
}

#[test]
fn a_search_is_bounded() {
    let wide: serde_json::Map<String, Json> =
        (0..300).map(|number| (format!("argument_{number}"), json!({"type": "string"}))).collect();
    let wide = json!({"type": "object", "properties": wide});
    let tools = (0..50).map(|number| tool(&format!("make_{number}"), &"word ".repeat(9_000), wide.clone())).collect();
    let tools = ToolSet::new(tools).unwrap();
    let found = tools.search(&"make word ".repeat(10_000), false);
    assert_eq!((found.tools.len(), found.more), (20, 30));
    assert!(found.tools.iter().all(|line| line.chars().count() <= 400));
}

#[test]
fn tools_that_look_up_are_not_found() {
    let tools = shop().with_look_up(Layout::Operations, Budget(1)).unwrap().unwrap();
    assert_eq!(tools.len(), 7);
    assert_eq!(found(&tools, "tools").len(), 0);
    let line = &tools.search("search_tools", true).tools[0];
    assert_eq!(
        line,
        "POST /search_tools(query: str)  # Find tools by words of their names and descriptions.  # query: A few words of what it is to do."
    );
    assert_eq!(tools.search("search_tools", false).tools[0].split('(').next(), Some("search_tools"));
}

#[test]
fn a_tool_is_described_with_its_schema() {
    let described = shop().describe("placeOrder", true).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&described).unwrap());
    let described = set().describe("search", false).unwrap();
    assert_eq!(described.parameters, set().get("search").unwrap().parameters);
    assert_eq!(set().describe("/search", true).unwrap().signature.split('(').next(), Some("POST /search"));
    let violation = set().describe("serch", false).unwrap_err();
    assert_eq!(violation.code, Code::UnknownTool);
    assert_eq!(violation.hint.as_deref(), Some("did you mean 'search'?"));
}

#[test]
fn a_large_schema_is_described_by_its_upper_levels() {
    let level = |below: Json| {
        let properties: serde_json::Map<String, Json> =
            (0..12).map(|number| (format!("part{number}"), below.clone())).collect();
        json!({"type": "object", "properties": properties, "required": ["part0"]})
    };
    let leaf = json!({"type": "string", "description": "x".repeat(500)});
    let tools = ToolSet::new(vec![tool("build", "Build.", level(level(level(leaf))))]).unwrap();
    let parameters = tools.describe("build", false).unwrap().parameters;
    assert!(parameters.to_string().len() < 8_000);
    assert_eq!(parameters["required"], json!(["part0"]));
    let part = &parameters["properties"]["part3"];
    assert_eq!(part["type"], json!("object"));
    assert!(part["description"].as_str().unwrap().starts_with("{part0: object, part1?: object, "), "{part}");
    jsonschema::meta::validate(&parameters).unwrap();
    let wide: serde_json::Map<String, Json> =
        (0..4_000).map(|number| (format!("argument_{number}"), json!({"type": "string"}))).collect();
    let tools = ToolSet::new(vec![tool("wide", "", json!({"type": "object", "properties": wide}))]).unwrap();
    assert!(tools.describe("wide", false).unwrap().parameters.to_string().chars().count() < 8_000);
}

#[test]
fn a_schema_within_itself_is_described() {
    let node = json!({"type": "object", "properties": {
        "next": {"$ref": "#/$defs/Node"}, "others": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
        "text": {"type": "string", "description": "x".repeat(9_000)},
    }});
    let schema = json!({"type": "object", "properties": {"node": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}});
    let tools = ToolSet::new(vec![tool("link", "", schema)]).unwrap();
    let parameters = tools.describe("link", false).unwrap().parameters;
    assert_eq!(parameters["properties"]["node"]["properties"]["next"]["type"], json!("object"));
    assert!(parameters.to_string().len() < 8_000);
}

#[test]
fn calls_by_name_may_say_the_route() {
    let tools = shop();
    let called = |name: &str, arguments: &str| {
        let found = tools.find(name, false).map_err(|violation| violation.message)?;
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        let checked = tools.check_call(&found, &arguments, &[]).map_err(|violation| violation.message)?;
        Ok((found.tool.name.clone(), Value::Object(checked.arguments).to_json()))
    };
    let ok = |name: &str, arguments: &str| Ok((name.to_owned(), arguments.to_owned()));
    assert_eq!(called("GET /orders/{id}", r#"{"id": "5"}"#), ok("GET /orders/{id}", r#"{"id":"5"}"#));
    assert_eq!(called("GET /orders/5", "{}"), ok("GET /orders/{id}", r#"{"id":"5"}"#));
    assert_eq!(called("cancelOrder", r#"{"id": "5"}"#), ok("DELETE /orders/{id}", r#"{"id":"5"}"#));
    assert_eq!(called("GET /orders?status=open", "{}"), ok("GET /orders", r#"{"status":"open"}"#));
    assert_eq!(
        called("GET /orders/5", r#"{"id": "6"}"#),
        Err("'id' is the string \"5\" in the route and the string \"6\" in the payload".to_owned())
    );
    assert_eq!(called("/orders", "{}"), Err("the route '/orders' names 2 operations".to_owned()));
    assert_eq!(called("listOrder", "{}"), Err("unknown route 'listOrder'".to_owned()));
    // A tool beside the document goes by its name alone.
    let tools = shop().with(vec![tool("add", "", json!({"type": "object"}))]).unwrap();
    assert_eq!(tools.find("add", false).unwrap().tool.name, "add");
    assert_eq!(tools.find("ad", false).unwrap_err().message, "unknown tool 'ad'");
    assert_eq!(tools.find("POST /add", true).unwrap().tool.name, "add");
    assert!(set().find("POST /search", false).is_err());
    let twice = shop().with(vec![tool("orders", "", json!({"type": "object"}))]).unwrap_err();
    assert_eq!(twice.to_string(), "two tools are named 'POST /orders': give one of them another name");
}
