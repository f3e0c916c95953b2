//! Whatever the schema and whatever the value: what the schema admits can be written under the grammar of every protocol
//! and comes back equal.

use crate::cases;
use crate::walk::{Random, follows, matcher, read, tool};
use callslip::protocol::grammar::Scope;
use callslip::protocol::{Chatty, Move, Protocol, React, Ticket, chatty, react, ticket};
use callslip::tool::ToolSet;
use serde_json::{Map, Value as Json, json};

/// Pairs of a schema and a value: so many sets of tools, each of so many tools, with so many values for each.
const SETS: u32 = 50;
const TOOLS: usize = 10;
const VALUES: usize = 2;

fn pick<'a, T>(random: &mut Random, of: &'a [T]) -> &'a T {
    &of[random.below(of.len())]
}

const PIECES: [&str; 26] = [
    "a",
    "B",
    "7",
    " ",
    "\"",
    "\\",
    "\n",
    "\t",
    "\r",
    "/",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    "$",
    "é",
    "日本",
    "🎉",
    "'",
    "`",
    "\u{1}",
    "\u{7f}",
    "</tool>",
    "print(\"x\")\n",
];

fn text(random: &mut Random, least: usize, most: usize) -> String {
    let count = least + random.below(most - least + 1);
    let mut text = String::new();
    while text.chars().count() < count {
        let piece: &&str = pick(random, PIECES.as_slice());
        text.push_str(piece);
    }
    text.chars().take(count).collect()
}

fn number(random: &mut Random) -> f64 {
    let mantissa = f64::from(u32::try_from(random.below(2_000_000_000)).unwrap()) / 1e9;
    let power = i32::try_from(random.below(40)).unwrap() - 20;
    let sign = if random.below(2) == 0 { 1.0 } else { -1.0 };
    sign * mantissa * 10_f64.powi(power)
}

/// A schema, with values that it admits.
struct Made {
    schema: Json,
    values: Vec<Json>,
}

/// Patterns, with texts that match.
const PATTERNS: [(&str, [&str; 3]); 8] = [
    (
        "^[a-z]+(-[a-z]+)*$",
        ["a", "ab-cd-ef", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"],
    ),
    ("\\d", ["1", "a \"7\" \n b", "\t0\\"]),
    ("^[^\\s/]+$", ["é\"'", "\\\\", "👨\u{200d}👩"]),
    ("^\\S+@\\S+$", ["christopher.montgomery-smith@internationalbusinessmachines.example", "a@b", "é@ü"]),
    ("^/(?:\\w+/)*\\w*$", ["/", "/usr/lib/x", "/a_b/c9"]),
    ("^[\\p{L} ]*$", ["", "Zoë Ångström", "Ωmega"]),
    ("^(yes|no|\"maybe\")$", ["yes", "no", "\"maybe\""]),
    ("^[A-Z]{2}\\d{3,}$", ["AB123", "XY0000000000000000000000", "QQ999"]),
];

#[expect(clippy::too_many_lines, reason = "a table of kinds")]
fn made(random: &mut Random, depth: usize) -> Made {
    let kinds = if depth == 0 { 9 } else { 15 };
    match random.below(kinds) {
        0 => {
            let values = vec![json!(text(random, 0, 40)), json!(text(random, 0, 5)), json!("$call_x"), json!("")];
            Made { schema: json!({"type": "string"}), values }
        }
        1 => {
            let (least, more) = (random.below(4), random.below(300));
            let values = vec![json!(text(random, least, least)), json!(text(random, least + more, least + more))];
            Made { schema: json!({"type": "string", "minLength": least, "maxLength": least + more}), values }
        }
        2 => {
            let (pattern, values) = pick(random, PATTERNS.as_slice());
            Made {
                schema: json!({"type": "string", "pattern": pattern}),
                values: values.iter().map(|text| json!(text)).collect(),
            }
        }
        3 => {
            let low = i64::try_from(random.below(5_000)).unwrap() - 2_500;
            let high = low + i64::try_from(random.below(100_000)).unwrap();
            let mut schema = json!({"type": "integer"});
            let mut values = vec![json!(low), json!(high), json!(i64::midpoint(low, high))];
            match random.below(4) {
                0 => schema["minimum"] = json!(low),
                1 => schema["maximum"] = json!(high),
                2 => {
                    schema["minimum"] = json!(low);
                    schema["exclusiveMaximum"] = json!(high + 1);
                }
                _ => values.push(json!(9_007_199_254_740_993_i64)),
            }
            if schema.get("maximum").is_none() && schema.get("exclusiveMaximum").is_none() {
                values.push(json!(12_345_678_901_234_i64));
            }
            Made { schema, values }
        }
        4 => {
            let (one, other) = (number(random), number(random));
            let (low, high) = if one < other { (one, other) } else { (other, one) };
            let mut schema = json!({"type": "number"});
            match random.below(4) {
                0 => schema["minimum"] = json!(low),
                1 => schema["maximum"] = json!(high),
                2 => {
                    schema["minimum"] = json!(low);
                    schema["maximum"] = json!(high);
                }
                _ => {}
            }
            let mut values = vec![json!(low), json!(high), json!(f64::midpoint(low, high))];
            if random.below(2) == 0 {
                schema = json!({"type": "number", "minimum": 0, "exclusiveMaximum": 1});
                values = vec![json!(0), json!(0.5), json!(1e-7), json!(0.999_999_999_999_999_9), json!(5e-324)];
            }
            Made { schema, values }
        }
        5 => Made { schema: json!({"type": ["boolean", "null"]}), values: vec![json!(true), json!(null)] },
        6 => {
            let values = vec![json!(text(random, 1, 9)), json!({"a": [1, "\"", null]}), json!(-1.5)];
            Made { schema: json!({"enum": values}), values }
        }
        7 => {
            let values = vec![
                json!({"any": [text(random, 0, 9), {"deep": [[[[[1e21]]]]]}], text(random, 1, 5): {}}),
                json!([]),
                json!(0.1),
            ];
            Made { schema: json!({}), values }
        }
        8 => Made {
            schema: json!({"$ref": "#/$defs/Tree"}),
            values: vec![
                json!({"name": "a"}),
                json!({"name": "a", "below": [{"name": "b", "below": [{"name": "\n", "below": []}]}, {"name": ""}]}),
            ],
        },
        9 => {
            let Made { schema, values } = made(random, depth - 1);
            let long: Vec<Json> = values.iter().cycle().take(random.below(60)).cloned().collect();
            let (min, max) = (random.below(3).min(long.len()), long.len() + random.below(200));
            let schema = match random.below(2) {
                0 => json!({"type": "array", "items": schema}),
                _ => json!({"type": "array", "items": schema, "minItems": min, "maxItems": max}),
            };
            Made { schema, values: vec![Json::from(long)] }
        }
        10 => {
            let (one, other) = (made(random, depth - 1), made(random, 0));
            let first = one.values[0].clone();
            let values = vec![json!([first, other.values[0]]), json!([first, other.values[0], other.values[0]])];
            Made {
                schema: json!({"type": "array", "prefixItems": [one.schema], "items": other.schema, "minItems": 1}),
                values,
            }
        }
        11 => {
            let (one, other) = (made(random, depth - 1), made(random, depth - 1));
            let values = one.values.into_iter().chain(other.values).collect();
            Made { schema: json!({"anyOf": [one.schema, other.schema]}), values }
        }
        12 => {
            let Made { schema, values } = made(random, depth - 1);
            let pairs = values.iter().cycle().take(random.below(20)).enumerate();
            let map: Map<String, Json> =
                pairs.map(|(at, value)| (format!("{} {at}", text(random, 0, 4)), value.clone())).collect();
            Made { schema: json!({"type": "object", "additionalProperties": schema}), values: vec![Json::Object(map)] }
        }
        13 => {
            let Made { schema, values } = made(random, depth - 1);
            Made { schema: json!({"allOf": [schema, {"description": "the same"}]}), values }
        }
        _ => object(random, depth - 1),
    }
}

fn object(random: &mut Random, depth: usize) -> Made {
    let mut properties = Map::new();
    let mut required = Vec::new();
    let (mut whole, mut least) = (Map::new(), Map::new());
    for at in 0..random.below(5) {
        let name = format!("{}{at}", pick(random, ["a ", "b.c", "$d", "é\"", "G-h\\"].as_slice()));
        let Made { schema, values } = made(random, depth);
        let value = pick(random, &values).clone();
        if random.below(2) == 0 {
            required.push(name.clone());
            least.insert(name.clone(), value.clone());
        }
        whole.insert(name.clone(), value);
        properties.insert(name, schema);
    }
    let mut schema = json!({"type": "object", "properties": properties, "required": required});
    let mut values = vec![Json::Object(least), Json::Object(whole.clone())];
    match random.below(5) {
        0 => schema["additionalProperties"] = json!(false),
        1 => {
            let Made { schema: other, values: others } = made(random, 0);
            schema["additionalProperties"] = other;
            for at in 0..random.below(4) {
                whole.insert(format!("more {at}"), pick(random, &others).clone());
            }
            values.push(Json::Object(whole));
        }
        2 => {
            whole.insert("a".to_owned(), json!(text(random, 0, 5)));
            values.push(Json::Object(whole));
        }
        3 => schema["maxProperties"] = json!(whole.len()),
        _ => schema["minProperties"] = json!(required.len()),
    }
    Made { schema, values }
}

/// JSON as the grammars write it.
fn spaced(value: &Json) -> String {
    match value {
        Json::Array(items) => format!("[{}]", items.iter().map(spaced).collect::<Vec<_>>().join(", ")),
        Json::Object(map) => {
            let members = map.iter().map(|(key, value)| format!("{}: {}", Json::from(key.as_str()), spaced(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        plain => plain.to_string(),
    }
}

/// The value as chatty writes it: a dollar sign that stands for itself is doubled where two begin a text.
fn for_chatty(value: &Json) -> Json {
    match value {
        Json::String(text) if text.starts_with("$$") => json!(format!("${text}")),
        Json::Array(items) => items.iter().map(for_chatty).collect(),
        Json::Object(map) => map.iter().map(|(key, value)| (key.clone(), for_chatty(value))).collect(),
        plain => plain.clone(),
    }
}

fn scope(tools: &ToolSet, thoughts: Option<u32>) -> Scope<'_> {
    Scope {
        tools,
        calls: true,
        delegates: false,
        finish: false,
        in_progress: Vec::new(),
        completed: Vec::new(),
        longest: None,
        agents: Vec::new(),
        thoughts,
        bounds: None,
    }
}

/// One tool for each schema.
fn tools_of(cases: &[Made]) -> ToolSet {
    let tree = json!({"Tree": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "below": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
        "required": ["name"],
        "additionalProperties": false,
    }});
    let tools = cases.iter().enumerate().map(|(at, made)| {
        let parameters = json!({"type": "object", "properties": {"x": made.schema}, "required": ["x"], "$defs": tree});
        tool(&format!("tool_{at}"), parameters)
    });
    ToolSet::new(tools.collect()).unwrap()
}

fn check(seed: u64) -> usize {
    let mut random = Random::new(seed);
    let cases: Vec<Made> = (0..TOOLS).map(|_| made(&mut random, 3)).collect();
    let tools = tools_of(&cases);
    let scope = scope(&tools, Some(40));
    let tags = Chatty::default().tags;
    let grammars = [
        react::grammar::react(&scope, false, None).lark,
        react::grammar::react(&scope, true, None).lark,
        chatty::grammar::chatty(&scope, &tags, None).lark,
        ticket::grammar::ticket(&scope, false, None).lark,
    ];
    let matchers = grammars.each_ref().map(|lark| matcher(lark));
    let mut count = 0;
    for (at, made) in cases.iter().enumerate().flat_map(|case| [case; VALUES]) {
        let value = pick(&mut random, &made.values);
        let plain = spaced(&json!({"x": value}));
        let quoted = Json::from(plain.as_str()).to_string();
        let dollars = spaced(&json!({"x": for_chatty(value)}));
        let replies: [(&dyn Protocol, String); 4] = [
            (&React::default(), format!(r#"{{"thought": "why \"so\"?", "action": "tool_{at}", "args": {plain}}}"#)),
            (&React::default(), format!(r#"{{"thought": "", "action": "tool_{at}", "args": {quoted}}}"#)),
            (
                &Chatty::default(),
                format!(
                    "<tool>\n[{{\"call_id\": \"call_1\", \"tool_name\": \"tool_{at}\", \"arguments\": {dollars}}}]\n</tool>"
                ),
            ),
            (
                &Ticket::default(),
                format!(
                    "<thoughts>\n\n</thoughts>\n<output>\n{{\"type\": \"CALL\", \"route\": \"POST /tool_{at}\", \"payload\": {plain}, \"description\": \"w\"}}\n</output>"
                ),
            ),
        ];
        for ((matcher, lark), (protocol, reply)) in matchers.iter().zip(&grammars).zip(replies) {
            let (length, ends) = follows(matcher, &reply);
            assert!(
                length == reply.len() && ends,
                "seed {seed}, {}: {}\nstops at {:?}\n{reply}\n{lark}",
                protocol.name(),
                made.schema,
                String::from_utf8_lossy(&reply.as_bytes()[length..]),
            );
            let Move::Call { calls } = read(protocol, &tools, &reply) else { panic!("{reply}") };
            let arguments: Json = serde_json::from_str(&calls[0].arguments.to_json()).unwrap();
            let sent = if protocol.name() == "chatty" { for_chatty(value) } else { value.clone() };
            assert_eq!(arguments["x"], sent, "seed {seed}: {reply}");
        }
        count += 1;
    }
    count
}

#[test]
fn every_value_can_be_written_and_comes_back() {
    let (first, sets) = (crate::walk::seed(), cases::of(SETS));
    let count: usize = (first..first + u64::from(sets)).map(check).sum();
    assert_eq!(count, sets as usize * TOOLS * VALUES);
}

/// Values of every kind that a grammar once cut off or left out.
fn awkward() -> Vec<Json> {
    let code = "\tprint(\"line\", 'it\\'s', r\"\\d+\")\n".repeat(200);
    vec![
        json!("a \"quoted\" word, a \\ and\na line\tend\r\n"),
        json!("x".repeat(5_000)),
        json!(code),
        json!("\u{0}\u{1b}\u{7f}\u{85}\u{200d}\u{2028}\u{1f468}\u{200d}\u{1f469}"),
        json!("<b>{[word]}</b> $call_x $$ </output> <think> [INST] </tool"),
        json!(1e-7),
        json!(1.797_693_134_862_315_7e308),
        json!(0.123_456_789_012_345_67),
        json!(12_345_678_901_234_567_u64),
        json!([1, [2, [3, [4, [5, [6, {"a": {"b": {"c": [null, true]}}}]]]]]]),
        json!((0..300).collect::<Vec<u32>>()),
        json!((0..40).map(|at| (format!("key {at}"), json!(at))).collect::<serde_json::Map<_, _>>()),
    ]
}

fn called(moved: Move) -> Json {
    let Move::Call { calls } = moved else { panic!("{moved:?}") };
    serde_json::from_str(&calls[0].arguments.to_json()).unwrap()
}

#[test]
fn whatever_is_admitted_comes_back_equal() {
    let tools = ToolSet::new(vec![
        tool("any", json!({"type": "object", "properties": {"x": {}}, "required": ["x"]})),
        tool("text", json!({"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]})),
    ])
    .unwrap();
    let scope = scope(&tools, None);
    let tags = Chatty::default().tags;
    let react = matcher(&react::grammar::react(&scope, false, None).lark);
    let strict = matcher(&react::grammar::react(&scope, true, None).lark);
    let chatty = matcher(&chatty::grammar::chatty(&scope, &tags, None).lark);
    let ticket = matcher(&ticket::grammar::ticket(&scope, false, None).lark);
    for value in awkward() {
        let name = if value.is_string() { "text" } else { "any" };
        let arguments = spaced(&json!({"x": value}));
        let text = Json::from(arguments.as_str()).to_string();
        for (protocol, grammar, reply) in [
            (
                &React::default() as &dyn Protocol,
                &react,
                format!(r#"{{"thought": "x", "action": "{name}", "args": {arguments}}}"#),
            ),
            (&React::default(), &strict, format!(r#"{{"thought": "x", "action": "{name}", "args": {text}}}"#)),
            (
                &Chatty::default(),
                &chatty,
                format!(
                    "<tool>\n[{{\"call_id\": \"call_1\", \"tool_name\": \"{name}\", \"arguments\": {arguments}}}]\n</tool>"
                ),
            ),
            (
                &Ticket::default(),
                &ticket,
                format!(
                    "<thoughts>\nfirst <b>\nthen\n</thoughts>\n<output>\n{{\"type\": \"CALL\", \"route\": \"POST /{name}\", \"payload\": {arguments}, \"description\": \"why\"}}\n</output>"
                ),
            ),
        ] {
            assert_eq!(follows(grammar, &reply), (reply.len(), true), "{reply}");
            assert_eq!(called(read(protocol, &tools, &reply))["x"], value);
        }
    }
}
