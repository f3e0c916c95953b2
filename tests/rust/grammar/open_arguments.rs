//! Schemas of arguments that name none: prompt, grammar and check take them for any object, as JSON Schema does.

use crate::walk::{Random, admits, is_refused, matcher, tool, walk_to};
use callslip::protocol::grammar::Scope;
use callslip::protocol::{Chatty, Code, Protocol, React, Ticket, chatty, react, ticket};
use callslip::tool::ToolSet;
use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

/// The scope of a call and nothing else.
fn scope(tools: &ToolSet) -> Scope<'_> {
    Scope {
        tools,
        calls: true,
        delegates: false,
        finish: false,
        in_progress: Vec::new(),
        completed: Vec::new(),
        longest: None,
        agents: Vec::new(),
        thoughts: Some(40),
        bounds: None,
    }
}

fn replies(arguments: &str) -> [String; 3] {
    [
        format!(r#"{{"thought": "", "action": "one", "args": {arguments}}}"#),
        format!("<tool>\n[{{\"call_id\": \"call_1\", \"tool_name\": \"one\", \"arguments\": {arguments}}}]\n</tool>"),
        format!(
            "<thoughts>\n\n</thoughts>\n<output>\n{{\"type\": \"CALL\", \"route\": \"POST /one\", \"payload\": {arguments}, \"description\": \"w\"}}\n</output>"
        ),
    ]
}

fn protocols() -> [Box<dyn Protocol>; 3] {
    [Box::new(React::default()), Box::new(Chatty::default()), Box::new(Ticket::default())]
}

fn grammars(tools: &ToolSet) -> [String; 3] {
    let scope = scope(tools);
    let grammars = [
        react::grammar::react(&scope, false, None),
        chatty::grammar::chatty(&scope, &Chatty::default().tags, None),
        ticket::grammar::ticket(&scope, false, None),
    ];
    grammars.map(|grammar| {
        assert!(grammar.unruled.is_empty());
        grammar.lark
    })
}

fn is_taken(tools: &ToolSet, arguments: &str) -> bool {
    let spec = tools.get("one").unwrap();
    tools.check(spec, &serde_json::from_str(arguments).unwrap()).is_ok()
}

#[test]
fn any_object_is_admitted_where_nothing_is_said_of_arguments() {
    for schema in [
        json!({}),
        json!({"type": "object"}),
        json!({"description": "whatever there is"}),
        json!({"$defs": {"a": {"properties": {"a": {}}}}}),
        json!({"additionalProperties": true}),
        json!({"properties": {}, "additionalProperties": {}}),
        json!({"allOf": [{}, {"type": "object"}]}),
    ] {
        let tools = ToolSet::new(vec![tool("one", schema.clone())]).unwrap();
        for arguments in ["{}", r#"{"city": "Oslo"}"#, r#"{"a": {"b": [1, null, "$x"]}, "c d": false}"#] {
            assert!(is_taken(&tools, arguments), "{schema}");
            for (lark, reply) in grammars(&tools).iter().zip(replies(arguments)) {
                assert!(admits(lark, &reply), "{schema}\n{reply}\n{lark}");
            }
        }
        // Only an object is one.
        for arguments in ["[]", "5", "true"] {
            assert!(!is_taken(&tools, arguments), "{schema}");
            for (lark, reply) in grammars(&tools).iter().zip(replies(arguments)) {
                assert!(!admits(lark, &reply), "{schema}\n{reply}");
            }
        }
        for protocol in protocols() {
            let prompt = protocol.system_prompt(&tools, false, "").unwrap();
            let says = ["one(…)", "any further name", r#""parameters":{"#].iter().any(|form| prompt.contains(form));
            assert!(says && !prompt.contains("args: none"), "{prompt}");
        }
    }
}

#[test]
fn no_arguments_are_admitted_where_a_schema_names_none() {
    for schema in [
        json!({"type": "object", "properties": {}}),
        json!({"properties": {}}),
        json!({"additionalProperties": false}),
        json!({"unevaluatedProperties": false}),
    ] {
        let tools = ToolSet::new(vec![tool("one", schema.clone())]).unwrap();
        for (arguments, is_right) in [("{}", true), (r#"{"city": "Oslo"}"#, false)] {
            assert_eq!(is_taken(&tools, arguments), is_right, "{schema}");
            for (lark, reply) in grammars(&tools).iter().zip(replies(arguments)) {
                assert_eq!(admits(lark, &reply), is_right, "{schema}\n{reply}");
            }
        }
    }
}

/// What may stand beside no `properties`, each by its own chance.
fn open_schema() -> impl Strategy<Value = Json> {
    let choices: Vec<(&'static str, Vec<Json>)> = vec![
        ("type", vec![json!("object")]),
        ("required", vec![json!(["a"]), json!([])]),
        ("additionalProperties", vec![json!(true), json!({}), json!({"type": "integer"})]),
        ("propertyNames", vec![json!({"maxLength": 3}), json!({"pattern": "^[ab]"})]),
        ("minProperties", vec![json!(1)]),
        ("maxProperties", vec![json!(2)]),
        ("description", vec![json!("d")]),
    ];
    let each: Vec<_> = choices
        .into_iter()
        .map(|(key, values)| {
            let one = proptest::sample::select(values).prop_map(move |value| (key.to_owned(), value));
            proptest::option::of(one)
        })
        .collect();
    each.prop_map(|chosen| Json::Object(chosen.into_iter().flatten().collect::<Map<String, Json>>()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::of(48), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_grammar_admits_of_them_is_taken(schema in open_schema(), seed in 1..1_000_000_u64) {
        let tools = ToolSet::new(vec![tool("one", schema.clone())]).unwrap();
        let mut random = Random::new(seed);
        for ((lark, protocol), at) in grammars(&tools).iter().zip(protocols()).zip(0_usize..) {
            let walked = matcher(lark);
            for _ in 0..2 {
                let Some(text) = walk_to(&walked, &mut random, 3_000) else { continue };
                is_refused(&*protocol, &tools, &text, &[Code::DuplicateKey]);
            }
            for arguments in ["{}", r#"{"a": 1}"#, r#"{"a": 1, "b": "x"}"#, r#"{"b": 2}"#, r#"{"city": true}"#] {
                let admitted = admits(lark, &replies(arguments)[at]);
                prop_assert!(!admitted || is_taken(&tools, arguments), "{}: {}", schema, arguments);
            }
        }
    }
}
