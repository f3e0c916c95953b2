//! What the grammars admit, the strict readers read: random replies of each language, and replies that none may have.

use crate::walk::{Random, admits, read, tool, walk};
use callslip::protocol::chatty::read::ToolTags;
use callslip::protocol::grammar::{Bounds, Grammar, Scope};
use callslip::protocol::{Chatty, Code, Move, Protocol, React, Ticket, chatty, react, ticket};
use callslip::tool::{Budget, Layout, ToolSet, ToolSpec};
use serde_json::{Value as Json, json};

const WALKS: u32 = 40;

fn object(properties: Json, required: &[&str]) -> Json {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn simple() -> ToolSet {
    ToolSet::new(vec![
        tool("calculator", object(json!({"expression": {"type": "string"}}), &["expression"])),
        tool("weather", object(json!({"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}}), &["city"])),
        tool("now", object(json!({}), &[])),
        tool(
            "search",
            object(
                json!({"limit": {"type": "integer", "minimum": 1, "maximum": 20}, "query": {"type": "string"}}),
                &["query"],
            ),
        ),
        tool(
            "send",
            object(
                json!({
                    "to": {"type": "array", "items": {"type": "string", "format": "email"}, "minItems": 1},
                    "subject": {"type": "string", "maxLength": 60},
                    "urgent": {"type": "boolean"},
                }),
                &["to", "subject"],
            ),
        ),
    ])
    .unwrap()
}

/// Schemas with something of everything.
fn intricate() -> ToolSet {
    let tree = json!({
        "type": "object",
        "properties": {"node": {"$ref": "#/$defs/Node"}},
        "required": ["node"],
        "$defs": {"Node": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                "parent": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
            },
            "required": ["name"],
        }},
    });
    ToolSet::new(vec![
        tool("tree", tree),
        tool(
            "limits",
            object(
                json!({
                    "percent": {"type": "number", "minimum": 0, "maximum": 100},
                    "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
                    "fine": {"type": "number", "minimum": 0.25, "maximum": 0.3},
                    "below": {"type": "integer", "maximum": -3},
                    "odd": {"type": "integer", "minimum": -37, "maximum": 4096},
                    "name": {"type": "string", "minLength": 3, "maxLength": 5},
                }),
                &["percent", "share", "fine", "below", "odd", "name"],
            ),
        ),
        tool(
            "kinds",
            json!({
                "type": "object",
                "properties": {
                    "any": {},
                    "maybe": {"type": ["string", "null"]},
                    "either": {"anyOf": [{"type": "integer"}, {"type": "number"}, {"type": "array", "items": {"type": "boolean"}}]},
                    "one": {"oneOf": [
                        {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "integer"}}, "required": ["kind", "x"]},
                        {"type": "object", "properties": {"kind": {"const": "b"}}, "required": ["kind"]},
                    ]},
                    "both": {"allOf": [{"type": "string", "minLength": 2}, {"maxLength": 4}]},
                    "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"enum": ["\"quoted\"", "back\\slash", "é"]}], "minItems": 2, "maxItems": 2},
                    "prices": {"type": "object", "additionalProperties": {"type": "number"}, "maxProperties": 1},
                    "fixed": {"const": {"a": [1, 2.5, null]}},
                    "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": true},
                },
            }),
        ),
        texts(),
    ])
    .unwrap()
}

fn texts() -> ToolSpec {
    tool(
        "texts",
        object(
            json!({
                "date": {"type": "string", "format": "date"},
                "at": {"type": "string", "format": "date-time"},
                "id": {"type": "string", "format": "uuid"},
                "url": {"type": "string", "format": "uri"},
                "code": {"type": "string", "pattern": "^[A-Z]{2}\\d{3,}$"},
                "part": {"type": "string", "pattern": "[0-9]"},
                "other": {"type": "string", "pattern": "^[^\\s/]+$"},
                "path": {"type": "string", "pattern": "^/(?:\\w+/)*\\w*$"},
            }),
            &["date", "code", "part"],
        ),
    )
}

fn operations() -> ToolSet {
    let document = json!({
        "openapi": "3.1.0",
        "info": {"title": "shop", "version": "1"},
        "paths": {
            "/items/{id}": {
                "get": {"parameters": [
                    {"name": "id", "in": "path", "required": true, "schema": {"type": "integer", "minimum": 1}},
                    {"name": "full", "in": "query", "schema": {"type": "boolean"}},
                ]},
                "put": {
                    "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
                    "requestBody": {"content": {"application/json": {"schema": {
                        "type": "object",
                        "properties": {"title": {"type": "string"}, "price": {"type": "number", "minimum": 0}, "note": {"type": "string"}},
                        "required": ["title", "price"],
                    }}}},
                },
            },
            "/notes": {"post": {"requestBody": {"required": true, "content": {"text/plain": {
                "schema": {"type": "string", "minLength": 1},
            }}}}},
            "/labels": {"post": {"requestBody": {"required": true, "content": {"application/json": {
                "schema": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
            }}}}},
            "/items": {"get": {"parameters": [{"name": "q", "in": "query", "schema": {"type": "string"}}]}},
        },
    });
    ToolSet::from_openapi(&document.to_string()).unwrap()
}

fn all(tools: &ToolSet) -> Scope<'_> {
    Scope {
        tools,
        calls: true,
        delegates: false,
        finish: true,
        in_progress: Vec::new(),
        completed: Vec::new(),
        longest: None,
        agents: Vec::new(),
        thoughts: Some(160),
        bounds: None,
    }
}

fn tags() -> ToolTags {
    Chatty::default().tags
}

/// Walks through the language, reads what comes, and gives the moves.
fn explore(protocol: &dyn Protocol, scope: &Scope<'_>, grammar: &Grammar) -> Vec<Move> {
    let mut random = Random::new(crate::walk::seed());
    let matcher = crate::walk::matcher(&grammar.lark);
    let replies = (0..crate::cases::of(WALKS)).map(|_| walk(&matcher, &mut random));
    replies.map(|text| read(protocol, scope.tools, &text)).collect()
}

fn is_call(moved: &Move) -> bool {
    matches!(moved, Move::Call { .. })
}

#[test]
fn react_replies_are_read() {
    for tools in [simple(), intricate()] {
        let grammar = react::grammar::react(&all(&tools), false, None);
        let moves = explore(&React::default(), &all(&tools), &grammar);
        assert!(moves.iter().any(is_call) && !moves.iter().all(is_call));
    }
}

#[test]
fn chatty_replies_are_read() {
    for tools in [simple(), intricate()] {
        // Apart: at random, hardly any reply would begin with a tag.
        let (calls, answers) = (Scope { finish: false, ..all(&tools) }, Scope { calls: false, ..all(&tools) });
        let moves = explore(&Chatty::default(), &calls, &chatty::grammar::chatty(&calls, &tags(), None));
        assert!(moves.iter().all(is_call));
        assert!(moves.iter().any(|moved| matches!(moved, Move::Call { calls } if calls.len() > 1)));
        let moves = explore(&Chatty::default(), &answers, &chatty::grammar::chatty(&answers, &tags(), None));
        assert!(!moves.iter().any(is_call));
    }
}

#[test]
fn ticket_replies_are_read() {
    for tools in [simple(), intricate(), operations()] {
        let scope = Scope { in_progress: vec!["T1".to_owned()], completed: vec!["T2".to_owned()], ..all(&tools) };
        let grammar = ticket::grammar::ticket(&scope, false, None);
        let moves = explore(&Ticket::default(), &scope, &grammar);
        assert!(moves.iter().any(is_call));
        assert!(moves.iter().any(|moved| matches!(moved, Move::Finish { .. })));
        assert!(moves.iter().any(|moved| matches!(moved, Move::Load { ticket_id, .. } if ticket_id == "T2")));
    }
}

#[test]
fn the_whole_body_of_a_request_is_a_payload() {
    let tools = operations();
    let grammar = ticket::grammar::ticket(&all(&tools), false, None);
    let call = |route: &str, payload: &str| {
        format!(
            "<thoughts>\n\n</thoughts>\n<output>\n{{\"type\": \"CALL\", \"route\": \"{route}\", \"payload\": {payload}, \"description\": \"d\"}}\n</output>"
        )
    };
    for (route, payload) in [
        ("POST /notes", r#""wash the car""#),
        ("POST /notes", r#"{"body": "wash the car"}"#),
        ("POST /labels", "[1, 2]"),
        ("POST /labels", r#"{"body": [1, 2]}"#),
    ] {
        let text = call(route, payload);
        assert!(admits(&grammar.lark, &text), "{text}");
        read(&Ticket::default(), &tools, &text);
    }
    for (route, payload) in
        [("POST /notes", "[1]"), ("POST /labels", r#""a""#), ("GET /items", r#""a""#), ("PUT /items/{id}", r#""a""#)]
    {
        assert!(!admits(&grammar.lark, &call(route, payload)), "{route} {payload}");
    }
}

#[test]
fn the_scope_says_what_may_be_said() {
    let tools = simple();
    let call = r#"{"thought": "x", "action": "calculator", "args": {"expression": "1+1"}}"#;
    let finish = r#"{"thought": "x", "action": "FINISH", "final_answer": "2", "task_successful": true}"#;
    let both = react::grammar::react(&all(&tools), false, None).lark;
    assert!(admits(&both, call) && admits(&both, finish));
    let only_call = react::grammar::react(&Scope { finish: false, ..all(&tools) }, false, None).lark;
    assert!(admits(&only_call, call) && !admits(&only_call, finish));
    let only_finish = react::grammar::react(&Scope { calls: false, ..all(&tools) }, false, None).lark;
    assert!(!admits(&only_finish, call) && admits(&only_finish, finish));

    let block = "<tool>\n[{\"call_id\": \"call_1\", \"tool_name\": \"now\", \"arguments\": {}}]\n</tool>";
    let both = chatty::grammar::chatty(&all(&tools), &tags(), None).lark;
    assert!(admits(&both, block) && admits(&both, "It is noon,\nor nearly: 5 > 4 & \"so\" on [1, 2]. `é` 🎉"));
    let only_call = chatty::grammar::chatty(&Scope { finish: false, ..all(&tools) }, &tags(), None).lark;
    assert!(admits(&only_call, block) && !admits(&only_call, "It is noon."));
    let only_finish = chatty::grammar::chatty(&Scope { calls: false, ..all(&tools) }, &tags(), None).lark;
    assert!(!admits(&only_finish, block) && admits(&only_finish, "It is noon."));
}

#[test]
fn what_is_wrong_is_not_admitted() {
    let tools = simple();
    let react = react::grammar::react(&all(&tools), false, None).lark;
    for args in [
        r#""calculate", "args": {"expression": "1"}}"#,
        r#""calculator", "args": {"formula": "1"}}"#,
        r#""calculator", "args": {}}"#,
        r#""calculator", "args": "{\"expression\": \"1\"}"}"#,
        r#""calculator", "args": {"expression": "1"}, "final_answer": "1"}"#,
        r#""calculator", "args": {"expression": "1"}} "#,
        r#""search", "args": {"limit": 21, "query": "x"}}"#,
        r#""FINISH", "final_answer": "x"}"#,
    ] {
        let text = format!(r#"{{"thought": "x", "action": {args}"#);
        assert!(!admits(&react, &text), "{text}");
    }
    let chatty = chatty::grammar::chatty(&all(&tools), &tags(), None).lark;
    for text in [
        "",
        " noon",
        "<tool>\n[]\n</tool>",
        "noon <tool>",
        "<think>noon",
        "It is noon. [DONE]",
        "It is noon. <tool",
        "[{\"call_id\": \"call_1\", \"tool_name\": \"now\", \"arguments\": {}}]",
        "```json\n[{\"tool_name\": \"now\", \"arguments\": {}}]\n```",
        "{\"name\": \"now\", \"arguments\": {}}",
        "<tool_call>{\"name\": \"now\"}</tool_call>",
        "<tool>\n[{\"call_id\": \"call_2\", \"tool_name\": \"now\", \"arguments\": {}}]\n</tool>",
    ] {
        assert!(!admits(&chatty, text), "{text}");
    }
    let scope =
        Scope { in_progress: vec!["T1".to_owned()], completed: vec!["T2".to_owned()], finish: false, ..all(&tools) };
    let ticket = ticket::grammar::ticket(&scope, false, None).lark;
    let reply = |json: &str| format!("<thoughts>\nx\n</thoughts>\n<output>\n{json}\n</output>");
    for (json, admitted) in [
        (r#"{"type": "AWAIT", "ticket_id": "T1"}"#, true),
        (r#"{"type": "AWAIT", "ticket_id": "T2"}"#, true),
        (r#"{"type": "AWAIT", "ticket_id": "T3"}"#, false),
        (r#"{"type": "LOAD_TICKET", "ticket_id": "T1"}"#, false),
        (r#"{"type": "LOAD_TICKET", "ticket_id": "T2"}"#, true),
        (r#"{"type": "RETURN", "value": "x"}"#, false),
        (r#"{"type": "CALL", "route": "POST /now", "payload": {}, "description": "why"}"#, true),
        (r#"{"type": "CALL", "route": "POST /then", "payload": {}, "description": "why"}"#, false),
        (r#"{"type": "DELEGATE", "task": "x"}"#, false),
    ] {
        assert_eq!(admits(&ticket, &reply(json)), admitted, "{json}");
    }
    assert!(admits(
        &ticket::grammar::ticket(&all(&tools), false, None).lark,
        &reply(r#"{"type": "RETURN", "value": ["x", {"y": 1.5}]}"#)
    ));
}

#[test]
fn where_nothing_can_be_said_an_answer_can() {
    let none = ToolSet::new(Vec::new()).unwrap();
    let scope = Scope { finish: false, ..all(&none) };
    explore(&React::default(), &scope, &react::grammar::react(&scope, false, None));
    explore(&Chatty::default(), &scope, &chatty::grammar::chatty(&scope, &tags(), None));
    explore(&Ticket::default(), &scope, &ticket::grammar::ticket(&scope, false, None));
}

#[test]
fn thoughts_may_be_left_out() {
    let tools = ToolSet::new(vec![tool("echo", object(json!({"text": {"type": "string"}}), &["text"]))]).unwrap();
    let scope = Scope { thoughts: Some(0), ..all(&tools) };
    explore(&React::default(), &scope, &react::grammar::react(&scope, false, None));
    explore(&Ticket::default(), &scope, &ticket::grammar::ticket(&scope, false, None));
    assert!(!admits(
        &react::grammar::react(&scope, false, None).lark,
        r#"{"thought": "x", "action": "echo", "args": {"text": "y"}}"#
    ));
    assert!(admits(
        &react::grammar::react(&scope, false, None).lark,
        r#"{"thought": "", "action": "echo", "args": {"text": "y"}}"#
    ));
}

#[test]
fn the_text_is_short_and_always_the_same() {
    let tools =
        ToolSet::new(vec![tool("echo", object(json!({"text": {"type": "string", "maxLength": 9}}), &["text"]))]);
    let tools = tools.unwrap();
    let grammar = react::grammar::react(&Scope { finish: false, ..all(&tools) }, false, None);
    let lines: Vec<&str> = grammar.gbnf.lines().collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0], r#"root ::= "{\"thought\": " thought ", \"action\": \"echo\", \"args\": " args-echo "}""#);
    assert!(lines[1].starts_with(r#"string ::= "\"" ("#) && lines[1].ends_with(r#"{0,9} "\"""#));
    assert_eq!(lines[2], r#"args-echo ::= "{\"text\": " string "}""#);
    assert_eq!(grammar, react::grammar::react(&Scope { finish: false, ..all(&tools) }, false, None));
}

/// As many operations as the largest documents have, each with a schema that leads back to itself.
fn crowd() -> ToolSet {
    let node = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"},
        "below": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
        "beside": {"oneOf": [{"$ref": "#/components/schemas/Node"}, {"type": "null"}]},
    }});
    let body =
        json!({"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}});
    let paths = (0..1_223).map(|number| (format!("/things/{number}/{{id}}"), json!({"post": {"requestBody": body}})));
    let paths: serde_json::Map<String, Json> = paths.collect();
    let document = json!({"openapi": "3.1.0", "paths": paths, "components": {"schemas": {"Node": node}}});
    ToolSet::from_openapi(&document.to_string()).unwrap()
}

#[test]
fn of_a_crowd_any_name_is_admitted_with_any_object() {
    let tools = crowd();
    let crowded = |layout| tools.with_look_up(layout, Budget::default()).unwrap().unwrap();

    let tools = crowded(Layout::Operations);
    let grammar = ticket::grammar::ticket(&all(&tools), false, None);
    assert!(grammar.lark.len() < 200_000 && grammar.gbnf.len() < 200_000, "{}", grammar.lark.len());
    let reply = |route: &str, payload: &str| {
        format!(
            "<thoughts>\nx\n</thoughts>\n<output>\n{{\"type\": \"CALL\", \"route\": \"{route}\", \"payload\": {payload}, \"description\": \"why\"}}\n</output>"
        )
    };
    for (route, payload, admitted) in [
        ("POST /things/1222/{id}", r#"{"id": "5", "below": [{"name": "x"}]}"#, true),
        ("POST /things/0/{id}", "{}", true),
        ("POST /things/0/{id}", "[]", false),
        ("POST /things/1223/{id}", "{}", false),
        ("POST /search_tools", r#"{"query": "x"}"#, true),
        ("POST /search_tools", "{}", false),
        ("POST /describe_tool", r#"{"name": "x"}"#, true),
    ] {
        assert_eq!(admits(&grammar.lark, &reply(route, payload)), admitted, "{route} {payload}");
    }

    let tools = crowded(Layout::List);
    let grammar = react::grammar::react(&all(&tools), false, None);
    assert!(grammar.lark.len() < 200_000, "{}", grammar.lark.len());
    let schema: Json = serde_json::from_str(grammar.json_schema.as_deref().unwrap()).unwrap();
    assert_eq!(schema["type"], "object");
    let act = |name: &str, args: &str| format!(r#"{{"thought": "x", "action": "{name}", "args": {args}}}"#);
    assert!(admits(&grammar.lark, &act("POST /things/7/{id}", r#"{"id": "5"}"#)));
    assert!(!admits(&grammar.lark, &act("POST /things/7/5", "{}")));

    let tools = crowded(Layout::Json);
    let grammar = chatty::grammar::chatty(&all(&tools), &tags(), None);
    assert!(grammar.lark.len() < 200_000, "{}", grammar.lark.len());
    let block = |name: &str, arguments: &str| {
        format!("<tool>\n[{{\"call_id\": \"call_1\", \"tool_name\": \"{name}\", \"arguments\": {arguments}}}]\n</tool>")
    };
    assert!(admits(&grammar.lark, &block("POST /things/7/{id}", r#"{"id": "5"}"#)));
    assert!(!admits(&grammar.lark, &block("POST /things/7/{id}", "[]")));
}

#[test]
fn answers_hold_any_text() {
    let tools = simple();
    let grammar = chatty::grammar::chatty(&all(&tools), &tags(), None).lark;
    let long = "A sentence about `Vec<T>`, {braces} and [words]. ".repeat(120);
    for text in [
        "a < b, Vec<String>, {x} and [word] and [link](https://x.org)",
        "```python\ndef f(x):\n\treturn {\"x\": [x]}\n```",
        "```json\n{\"name\": \"Ann\", \"age\": 3}\n```\nas asked",
        "[1, 2, 3]",
        "{\"name\": \"Ann\"}",
        "<div class=\"x\"><b>bold</b></div>",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        long.trim_end(),
    ] {
        assert!(admits(&grammar, text), "{text} {:?}", crate::walk::admitted(&grammar, text));
        let Move::Finish { value, .. } = read(&Chatty::default(), &tools, text) else { panic!("{text}") };
        assert_eq!(value.as_str(), Some(text));
    }
}

#[test]
fn a_call_without_tags_is_led_into_a_block() {
    let tools = simple();
    let grammar = chatty::grammar::chatty(&all(&tools), &tags(), None).lark;
    let block = "<tool>\n[{\"call_id\": \"call_1\", \"tool_name\": \"now\", \"arguments\": {}}]\n</tool>";
    for (lead, between) in [
        ("[{\"call_id\"", "\n"),
        ("[\n  {\n    \"tool_name\"", "\n"),
        ("{\"tool_name\"", "\n"),
        ("{\"name\": \"now\", \"arguments\"", "\n"),
        ("```json\n[{\"call_id\"", "\n```\n"),
        ("I will look.\n```\n{\"call_id\"", "\n```\n"),
        ("I use `now`: [{\"call_id\"", "\n"),
        ("I use `now`:\n```json\n[\n  {\"call_id\"", "\n```\n"),
        ("Let me look at the clock.", "\n"),
        ("I use `now` and ``x`` ~5 times.", "\n"),
        ("```python\n\tnow()\n```\n\nSo I look.", "\n"),
        ("So:\n```\nnow()\n\n[1]\n```\nand\n~~~\n`x`\n~~~", "\n"),
    ] {
        let reply = format!("{lead}{between}{block}");
        assert!(admits(&grammar, &reply), "{reply} {:?}", crate::walk::admitted(&grammar, &reply));
        assert!(is_call(&read(&Chatty::default(), &tools, &reply)), "{reply}");
        if lead.ends_with('"') {
            assert!(!admits(&grammar, lead) && !admits(&grammar, &format!("{lead}: 1")), "{lead}");
        }
    }
}

#[test]
fn tags_of_any_marks_begin_a_block() {
    let tools = simple();
    for (start, end) in [
        ("[[CALL", "CALL]]"),
        ("{tool}", "{/tool}"),
        ("use:", ":end"),
        ("{tool", "tool}"),
        ("[a", "a]"),
        ("«call", "call»"),
    ] {
        let tags = ToolTags { start: start.to_owned(), end: end.to_owned() };
        let grammar = chatty::grammar::chatty(&all(&tools), &tags, None).lark;
        let protocol = Chatty { tags, ..Chatty::default() };
        let call = |at: u32| format!("{{\"call_id\": \"call_{at}\", \"tool_name\": \"now\", \"arguments\": {{}}}}");
        let block = format!("{start}\n[{}, {}]\n{end}", call(1), call(2));
        for reply in [block.clone(), format!("It is so.\n{block}"), format!("[{{\"call_id\"\n{block}")] {
            assert!(admits(&grammar, &reply), "{reply} {:?}", crate::walk::admitted(&grammar, &reply));
            assert!(is_call(&read(&protocol, &tools, &reply)), "{reply}");
        }
        assert!(admits(&grammar, "It is so.") && !admits(&grammar, &format!("It is so. {start} x")));
    }
}

#[test]
fn what_reaches_a_bound_is_cut_and_refused() {
    let tools = ToolSet::new(vec![tool(
        "send",
        object(json!({"text": {"type": "string"}, "list": {"type": "array", "items": {"type": "integer"}}}), &["text"]),
    )])
    .unwrap();
    let bounds = Bounds { answer: 30, string: 20, items: 3, thoughts: 10 };
    let scope = Scope { bounds: Some(bounds), thoughts: None, ..all(&tools) };
    let react = react::grammar::react(&scope, false, None).lark;
    let reply = |args: &str| format!(r#"{{"thought": "x", "action": "send", "args": {{"text": "{args}"#);
    assert!(admits(&react, &reply(&format!("{}\"}}}}", "x".repeat(19)))));
    assert!(admits(&react, &reply(&"x".repeat(20))), "{react}");
    assert!(!admits(&react, &reply(&"x".repeat(21))) && !admits(&react, &reply(&format!("{}\"}}}}", "x".repeat(20)))));
    assert!(admits(&react, &reply("x\", \"list\": [1, 2]}}")) && admits(&react, &reply("x\", \"list\": [1, 2, 3")));
    assert!(!admits(&react, &reply("x\", \"list\": [1, 2, 3]}}")));
    let chatty = chatty::grammar::chatty(&scope, &tags(), None).lark;
    let ticket = ticket::grammar::ticket(&scope, false, None).lark;
    let mut random = Random::new(crate::walk::seed());
    for (protocol, lark) in
        [(&React::default() as &dyn Protocol, react), (&Chatty::default(), chatty), (&Ticket::default(), ticket)]
    {
        let matcher = crate::walk::matcher(&lark);
        let mut cut = 0;
        for _ in 0..crate::cases::of(60) {
            let text = walk(&matcher, &mut random);
            cut += usize::from(crate::walk::is_refused(protocol, &tools, &text, &[Code::Truncated]));
        }
        assert!(cut > 0);
    }
}

#[test]
fn a_tool_whose_schema_admits_nothing_stays_and_is_named() {
    let tools = ToolSet::new(vec![
        tool("never", json!({"type": "object", "properties": {"x": {"enum": []}}, "required": ["x"]})),
        tool("endless", json!({"type": "object", "properties": {"x": {"$ref": "#"}}, "required": ["x"]})),
        tool("now", object(json!({}), &[])),
    ])
    .unwrap();
    for grammar in [
        react::grammar::react(&all(&tools), false, None),
        chatty::grammar::chatty(&all(&tools), &tags(), None),
        ticket::grammar::ticket(&all(&tools), false, None),
    ] {
        assert_eq!(grammar.unruled, ["never", "endless"]);
    }
    let react = react::grammar::react(&all(&tools), false, None).lark;
    assert!(admits(&react, r#"{"thought": "x", "action": "never", "args": {"x": [1]}}"#));
}
