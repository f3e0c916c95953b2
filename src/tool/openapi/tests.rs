use crate::reply::json_text::parse;
use crate::reply::{Code, Value};
use crate::tool::{Budget, Effect, Layout, ToolSet};
use serde_json::{Value as Json, json};

const PETS: &str = r##"{
  "openapi": "3.0.3",
  "info": {"title": "Pets", "version": "1"},
  "paths": {
    "/pets": {
      "get": {
        "operationId": "listPets", "summary": "List pets",
        "parameters": [
          {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 0, "exclusiveMinimum": true}},
          {"name": "tags", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
          {"name": "ids", "in": "query", "explode": false, "schema": {"type": "array", "items": {"type": "integer"}}},
          {"name": "Authorization", "in": "header", "schema": {"type": "string"}}
        ],
        "responses": {"200": {"content": {"application/json": {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}}}}}}
      },
      "post": {
        "operationId": "createPet", "summary": "Add a pet", "x-callslip": {"effect": "idempotent", "repeatable": true},
        "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}},
        "responses": {"201": {"$ref": "#/components/responses/Pet"}}
      }
    },
    "/pets/mine": {"get": {"operationId": "myPets"}},
    "/pets/{id}": {
      "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
      "get": {"operationId": "getPet", "summary": "One pet", "parameters": [{"name": "fields", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}}]},
      "delete": {"operationId": "deletePet"}
    },
    "/pets/{id}/notes/{note}": {
      "put": {
        "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
        "requestBody": {"content": {"application/json": {"schema": {
          "type": "object", "required": ["text", "made"], "properties": {"text": {"type": "string"}, "pinned": {"type": "boolean"}, "made": {"type": "string", "readOnly": true}}
        }}}}
      }
    },
    "/swap/{id}": {
      "post": {
        "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
        "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}}}}
      }
    },
    "/tags": {"put": {"requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "array", "items": {"type": "string"}}}}}}},
    "/compare/{base}...{head}": {"get": {}}
  },
  "components": {
    "schemas": {
      "Pet": {"type": "object", "required": ["name"], "example": {"name": "Rex"}, "properties": {
        "name": {"type": "string"},
        "kind": {"type": "string", "enum": ["cat", "dog"], "nullable": true},
        "parent": {"$ref": "#/components/schemas/Pet"}
      }}
    },
    "responses": {"Pet": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}}
  }
}"##;

fn pets() -> ToolSet {
    ToolSet::from_openapi(PETS).unwrap()
}

/// The tool that a route leads to and what the route says of its arguments.
fn routed(set: &ToolSet, route: &str) -> (String, String) {
    match set.resolve_route(route) {
        Ok(resolved) => (resolved.tool.name.clone(), Value::Object(resolved.path_arguments).to_json()),
        Err(violation) => panic!("{route}: {violation:?}"),
    }
}

fn lost(set: &ToolSet, route: &str) -> (String, String) {
    let violation = set.resolve_route(route).unwrap_err();
    assert_eq!(violation.code, Code::UnknownTool);
    (violation.message, violation.hint.unwrap())
}

#[test]
fn routes_are_read_in_every_way_that_names_one_operation() {
    let set = pets();
    for (route, name, arguments) in [
        ("GET /pets", "GET /pets", "{}"),
        ("  get   /pets ", "GET /pets", "{}"),
        ("GET /pets/", "GET /pets", "{}"),
        ("listPets", "GET /pets", "{}"),
        ("GET listPets", "GET /pets", "{}"),
        ("/pets/mine", "GET /pets/mine", "{}"),
        ("GET /pets/mine", "GET /pets/mine", "{}"),
        ("GET /pets/{id}", "GET /pets/{id}", "{}"),
        ("GET /pets/{petId}", "GET /pets/{id}", "{}"),
        ("GET /pets/:id", "GET /pets/{id}", "{}"),
        ("GET /pets/5", "GET /pets/{id}", r#"{"id":"5"}"#),
        ("DELETE /pets/5", "DELETE /pets/{id}", r#"{"id":"5"}"#),
        ("/pets/5/notes/a%20b%2Fc", "PUT /pets/{id}/notes/{note}", r#"{"id":"5","note":"a b/c"}"#),
        ("/pets/5/notes/{note}", "PUT /pets/{id}/notes/{note}", r#"{"id":"5"}"#),
        ("GET /compare/main...dev", "GET /compare/{base}...{head}", r#"{"base":"main","head":"dev"}"#),
        ("GET /pets?limit=5&tags=a&tags=b+c", "GET /pets", r#"{"limit":"5","tags":["a","b c"]}"#),
        ("GET /pets?tags=a&ids=1,2", "GET /pets", r#"{"tags":["a"],"ids":["1","2"]}"#),
        ("GET /pets/7?fields=name", "GET /pets/{id}", r#"{"id":"7","fields":["name"]}"#),
    ] {
        assert_eq!(routed(&set, route), (name.to_owned(), arguments.to_owned()), "{route}");
    }
}

#[test]
fn routes_that_leave_a_value_or_the_method_open_name_none() {
    let document = json!({
        "openapi": "3.0.0", "info": {"title": "t", "version": "1"},
        "paths": {
            "/users": {"get": {"operationId": "list", "responses": {}}},
            "/users/{id}": {
                "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
                "get": {"operationId": "one", "responses": {}},
                "delete": {"operationId": "drop", "responses": {}}
            },
            "/users/all": {"delete": {"operationId": "drop_all", "responses": {}}}
        }
    });
    let set = ToolSet::from_openapi(&document.to_string()).unwrap();
    for value in [
        "...",
        "…",
        "YOUR_ID",
        "undefined",
        "null",
        "None",
        "\"5\"",
        "'5'",
        "<user>",
        "[id]",
        "%22%22",
        "xxx",
        "XXXX",
        "TBD",
        "5 or 6",
        "$id",
    ] {
        assert!(set.resolve_route(&format!("DELETE /users/{value}")).is_err(), "{value}");
    }
    for route in ["/users/all", "/users/5", "DELETE /users/", "/users/"] {
        assert!(set.resolve_route(route).is_err(), "{route}");
    }
    for value in ["5", "nullable", "Yourson", "a.b", "xxxl", "é", "me:you"] {
        assert!(set.resolve_route(&format!("DELETE /users/{value}")).is_ok(), "{value}");
    }
    for route in ["DELETE /users/all", "GET /users", "GET /users/", "/users", "DELETE /users/{id}"] {
        assert!(set.resolve_route(route).is_ok(), "{route}");
    }
}

#[test]
fn routes_that_name_no_operation_come_with_the_nearest() {
    let set = pets();
    for (route, message, hint) in [
        ("/pets", "the route '/pets' names 2 operations", "use 'GET /pets' or 'POST /pets'"),
        (
            "GET /pets/7#top",
            "the route 'GET /pets/7#top' has a fragment, which is never sent",
            "use 'GET /pets/7', with values in the payload",
        ),
        ("/pets/5", "the route '/pets/5' names 2 operations", "use 'GET /pets/{id}' or 'DELETE /pets/{id}'"),
        (
            "DELETE /pets/mine",
            "unknown route 'DELETE /pets/mine': this path has no such method",
            "did you mean 'GET /pets/mine'?",
        ),
        (
            "PATCH /pets/5",
            "unknown route 'PATCH /pets/5': this path has no such method",
            "did you mean 'GET /pets/{id}' or 'DELETE /pets/{id}'?",
        ),
        ("listPet", "unknown route 'listPet'", "the nearest are 'GET /pets', 'POST /pets', 'GET /pets/{id}'"),
        ("GET /pet", "unknown route 'GET /pet'", "the nearest are 'GET /pets/{id}', 'GET /pets', 'GET /pets/mine'"),
        (
            "GET /compare/...dev",
            "unknown route 'GET /compare/...dev'",
            "the nearest are 'GET /compare/{base}...{head}', 'GET /pets', 'GET /pets/mine'. Call one of them only if it does \
             what is asked; if none does, answer: I did nothing, because no operation does this",
        ),
    ] {
        assert_eq!(lost(&set, route), (message.to_owned(), hint.to_owned()), "{route}");
    }
    for route in ["", "/", "GET", "x".repeat(1 << 20).as_str(), "GET /pets//5", "GET /pets/5/notes"] {
        assert!(set.resolve_route(route).is_err());
    }
    let empty = ToolSet::from_openapi(r#"{"openapi": "3.1.0"}"#).unwrap();
    assert_eq!(lost(&empty, "/x").1, "there are no operations");
}

#[test]
fn two_templates_for_one_path_are_ambiguous() {
    let set =
        ToolSet::from_openapi(r#"{"openapi": "3.1.0", "paths": {"/a/{x}/c": {"get": {}}, "/a/b/{y}": {"get": {}}}}"#)
            .unwrap();
    assert_eq!(lost(&set, "/a/b/c").0, "the route '/a/b/c' names 2 operations");
    assert_eq!(routed(&set, "/a/z/c").0, "GET /a/{x}/c");
}

#[test]
fn arguments_are_parameters_with_the_body_beside_them() {
    let set = pets();
    let schema = |name: &str| set.get(name).unwrap().parameters.clone();
    assert_eq!(
        schema("GET /pets"),
        json!({"type": "object", "properties": {
            "limit": {"type": "integer", "exclusiveMinimum": 0},
            "tags": {"type": "array", "items": {"type": "string"}},
            "ids": {"type": "array", "items": {"type": "integer"}},
        }})
    );
    assert_eq!(
        schema("POST /pets"),
        json!({"type": "object", "properties": {
            "name": {"type": "string"},
            "kind": {"type": ["string", "null"], "enum": ["cat", "dog", null]},
            "parent": {"$ref": "#/$defs/Pet"},
        }, "required": ["name"], "$defs": {"Pet": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"},
            "kind": {"type": ["string", "null"], "enum": ["cat", "dog", null]},
            "parent": {"$ref": "#/$defs/Pet"},
        }}}})
    );
    assert_eq!(
        schema("PUT /pets/{id}/notes/{note}"),
        json!({"type": "object", "dependentRequired": {"pinned": ["text"]}, "properties": {
            "id": {"type": "integer"}, "note": {"type": "string"}, "text": {"type": "string"}, "pinned": {"type": "boolean"},
        }, "required": ["id", "note"]})
    );
    assert_eq!(
        schema("POST /swap/{id}"),
        json!({"type": "object", "properties": {
            "id": {"type": "integer"},
            "body": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
        }, "required": ["id", "body"]})
    );
    assert_eq!(
        schema("PUT /tags"),
        json!({"type": "object", "properties": {"body": {"type": "array", "items": {"type": "string"}}}, "required": ["body"]})
    );
    for tool in set.iter() {
        jsonschema::meta::validate(&tool.parameters).unwrap();
    }
    set.compile().unwrap();
}

#[test]
fn methods_say_what_a_crash_means_unless_the_document_does() {
    let set = pets();
    let traits = |name: &str| {
        let tool = set.get(name).unwrap();
        (tool.effect, tool.readonly, tool.repeatable)
    };
    assert_eq!(traits("GET /pets"), (Effect::Pure, true, false));
    assert_eq!(traits("DELETE /pets/{id}"), (Effect::Idempotent, false, false));
    assert_eq!(traits("PUT /tags"), (Effect::Idempotent, false, false));
    assert_eq!(traits("POST /swap/{id}"), (Effect::Once, false, false));
    assert_eq!(traits("POST /pets"), (Effect::Idempotent, false, true));
}

fn called(set: &ToolSet, route: &str, payload: &Value) -> Result<(String, Vec<String>), String> {
    let resolved = set.resolve_route(route).unwrap();
    let checked = set.check_call(&resolved, payload, &[]).map_err(|violation| violation.message)?;
    Ok((Value::Object(checked.arguments).to_json(), checked.coerced))
}

#[test]
fn a_payload_joins_what_the_route_says() {
    let set = pets();
    let ok = |arguments: &str, coerced: &[&str]| {
        Ok((arguments.to_owned(), coerced.iter().map(|pointer| (*pointer).to_owned()).collect()))
    };
    let json = |text: &str| parse(text).unwrap();
    assert_eq!(called(&set, "GET /pets/5", &Value::Null), ok(r#"{"id":5}"#, &[]));
    assert_eq!(called(&set, "GET /pets/5", &Value::from("")), ok(r#"{"id":5}"#, &[]));
    assert_eq!(called(&set, "GET /pets/5", &json(r#"{"id": 5}"#)), ok(r#"{"id":5}"#, &[]));
    assert_eq!(called(&set, "GET /pets/{id}", &json(r#"{"id": "5"}"#)), ok(r#"{"id":5}"#, &["/id"]));
    assert_eq!(
        called(&set, "GET /pets/5", &Value::from(r#"{"fields": ["a"]}"#)),
        ok(r#"{"fields":["a"],"id":5}"#, &[])
    );
    assert_eq!(called(&set, "GET /pets?ids=1,2&limit=3", &Value::Null), ok(r#"{"ids":[1,2],"limit":3}"#, &[]));
    assert_eq!(called(&set, "PUT /tags", &json(r#"{"body": ["x"]}"#)), ok(r#"{"body":["x"]}"#, &[]));
    assert_eq!(
        called(&set, "GET /pets/5", &json(r#"{"id": 6}"#)),
        Err("'id' is the string \"5\" in the route and the integer 6 in the payload".to_owned())
    );
    assert_eq!(
        called(&set, "GET /pets/{id}", &Value::Null),
        Err("missing required argument 'id' (integer)".to_owned())
    );
    assert_eq!(
        called(&set, "GET /pets/five", &Value::Null),
        Err("'id' must be an integer: got the string \"five\"".to_owned())
    );
    assert_eq!(
        called(&set, "GET /pets/5", &json("[1]")),
        Err("the arguments must be an object: got an array of 1 item".to_owned())
    );
    assert_eq!(
        called(&set, "POST /pets", &json(r#"{"nmae": "Rex", "parent": {"kind": "fox"}}"#)),
        Err("unknown argument 'nmae': did you mean 'name'?; missing required argument 'name' (string); 'parent' lacks the required property 'name' (string); 'parent.kind' must be one of \"cat\", \"dog\" or null: got the string \"fox\"".to_owned())
    );
    assert_eq!(
        called(&set, "PUT /pets/5/notes/1", &json(r#"{"pinned": true}"#)),
        Err("missing required argument 'text' (string)".to_owned())
    );
}

#[test]
fn plain_tools_are_operations_too() {
    let set = crate::tool::set::tests::set();
    for route in ["calculator", "POST /calculator", "/calculator", "post calculator", "/calculator/"] {
        assert_eq!(routed(&set, route).0, "calculator", "{route}");
    }
    assert_eq!(
        called(&set, "/calculator?expression=1%2B1", &Value::Null),
        Ok((r#"{"expression":"1+1"}"#.to_owned(), vec![]))
    );
    assert_eq!(
        called(&set, "/search?query=x&max_results=3", &Value::Null),
        Ok((r#"{"query":"x","max_results":3}"#.to_owned(), vec![]))
    );
    assert_eq!(lost(&set, "GET /calculator").0, "unknown route 'GET /calculator': this path has no such method");
    assert_eq!(lost(&set, "/calculate").1, "the nearest are 'POST /calculator', 'POST /search', 'POST /now'");
    let document: Json = serde_json::from_str(&set.interface(Layout::Operations, Budget::default())).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["paths"]["/calculator"]["post"]["operationId"], "calculator");
    assert_eq!(document["paths"]["/now"], json!({"post": {"operationId": "now", "summary": "The time."}}));
}

#[test]
fn signatures_are_one_line_an_operation() {
    let set = pets();
    insta::assert_snapshot!(set.interface(Layout::Operations, Budget(300)));
    // A line says what the schemas of the call say, without making them.
    for tool in set.iter() {
        let line = set.shown_as(tool).unwrap().signature(true, 1);
        assert_eq!(line, crate::tool::render::signature(tool));
    }
}

#[test]
fn a_short_document_is_shown_as_it_is() {
    let set = ToolSet::from_openapi(
        r#"{"openapi": "3.1.0", "info": {"title": "x"}, "servers": [], "paths": {"/a": {"get": {"x-callslip": {"effect": "once"}}}}}"#,
    )
    .unwrap();
    assert_eq!(
        set.interface(Layout::Operations, Budget::default()),
        r#"{"openapi":"3.1.0","paths":{"/a":{"get":{}}}}"#
    );
}

#[test]
fn bodies_of_every_shape_have_a_place() {
    let document = |body: Json| {
        json!({"openapi": "3.1.0", "paths": {"/a": {"post": {"requestBody": body}}}, "components": {"schemas": {
            "Base": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
            "Loop": {"allOf": [{"$ref": "#/components/schemas/Loop"}]},
        }}})
        .to_string()
    };
    let body = |schema: Json| {
        let body = json!({"required": true, "content": {"text/plain": {}, "application/json": {"schema": schema}}});
        let set = ToolSet::from_openapi(&document(body)).unwrap();
        set.compile().unwrap();
        set.get("POST /a").unwrap().parameters.clone()
    };
    let all_of = json!({"allOf": [{"$ref": "#/components/schemas/Base"}, {"properties": {"b": {"type": "string"}}}]});
    assert_eq!(
        body(all_of),
        json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]})
    );
    let union = json!({"oneOf": [{"$ref": "#/components/schemas/Base"}, {"type": "null"}]});
    assert_eq!(body(union)["properties"]["body"]["anyOf"][0], json!({"$ref": "#/$defs/Base"}));
    assert_eq!(body(json!({"$ref": "#/components/schemas/Loop"}))["required"], json!(["body"]));
    assert_eq!(body(json!({"$ref": "elsewhere.json"}))["properties"], json!({"body": {}}));
    let open = body(json!({"type": "object", "additionalProperties": {"type": "integer"}}));
    assert_eq!(open, json!({"type": "object", "additionalProperties": {"type": "integer"}, "properties": {}}));
    let plain =
        ToolSet::from_openapi(&document(json!({"content": {"text/plain": {"schema": {"type": "string"}}}}))).unwrap();
    assert_eq!(plain.get("POST /a").unwrap().parameters["properties"], json!({"body": {"type": "string"}}));
}
