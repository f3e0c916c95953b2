use super::{Budget, Layout};
use crate::tool::set::tests::{set, tool};
use crate::tool::{ToolKind, ToolSet};
use serde_json::{Map, Value as Json, json};

const LAYOUTS: [Layout; 3] = [Layout::Json, Layout::List, Layout::Operations];

/// Tools as three servers offer them.
fn many(each: usize) -> ToolSet {
    let schema = json!({"type": "object", "properties": {
        "id": {"type": "integer", "description": "Whose."},
        "order": {"enum": ["asc", "desc"], "default": "asc"},
    }, "required": ["id"]});
    let tools = ["github_issue", "mail_send", "weather"].iter().flat_map(|prefix| {
        let schema = schema.clone();
        (0..each).map(move |number| {
            let description = format!("Do number {number} of what {prefix} does, which takes a while to say in words.");
            tool(&format!("{prefix}_{number}"), &description, schema.clone())
        })
    });
    ToolSet::new(tools.collect()).unwrap()
}

/// A document of which every other path has a tag.
fn document(paths: usize) -> ToolSet {
    let mut items = Map::new();
    for number in 0..paths {
        let tags = if number % 2 == 0 { json!(["even numbers", "numbers"]) } else { json!([]) };
        let name = if number % 2 == 0 { "even" } else { "odd" };
        let get = json!({
            "operationId": format!("get{number}"),
            "summary": format!("Look at number {number}"),
            "tags": tags,
            "parameters": [
                {"name": "id", "in": "path", "schema": {"type": "integer"}},
                {"name": "deep", "in": "query", "schema": {"$ref": "#/components/schemas/Deep"}},
            ],
        });
        items.insert(format!("/{name}/{number}/{{id}}"), json!({"get": get}));
    }
    let deep: Json =
        json!({"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}});
    let document = json!({"openapi": "3.1.0", "paths": items, "components": {"schemas": {"Deep": deep}}});
    ToolSet::from_openapi(&document.to_string()).unwrap()
}

/// What is offered, and how it is shown.
fn shown(tools: &ToolSet, layout: Layout, tokens: usize) -> (ToolSet, String) {
    let tools = tools.with_look_up(layout, Budget(tokens)).unwrap().unwrap_or_else(|| tools.without(&[]));
    let text = tools.interface(layout, Budget(tokens));
    (tools, text)
}

#[test]
fn with_room_tools_are_shown_whole_and_nothing_looks_them_up() {
    for layout in LAYOUTS {
        let (tools, _) = shown(&set(), layout, 8_000);
        assert_eq!(tools.names().collect::<Vec<_>>(), ["calculator", "search", "now"]);
        assert!(!tools.is_crowded());
    }
}

#[test]
fn with_less_room_there_is_a_line_for_each_tool() {
    for layout in LAYOUTS {
        let (tools, text) = shown(&set(), layout, 80);
        assert!(!tools.is_crowded());
        insta::assert_snapshot!(format!("lines_{layout:?}"), text);
    }
    // Only routes go without their summaries.
    let (tools, text) = shown(&set(), Layout::Operations, 45);
    assert!(!tools.is_crowded());
    insta::assert_snapshot!("signatures_Operations", text);
}

#[test]
fn with_little_room_there_are_names_and_tools_that_look_them_up() {
    for layout in LAYOUTS {
        let tokens = if layout == Layout::Operations { 280 } else { 740 };
        let (tools, text) = shown(&many(8), layout, tokens);
        assert!(tools.is_crowded());
        insta::assert_snapshot!(format!("names_{layout:?}"), text);
    }
}

#[test]
fn with_least_room_there_is_an_index() {
    for layout in LAYOUTS {
        insta::assert_snapshot!(format!("index_{layout:?}"), shown(&many(40), layout, 300).1);
        insta::assert_snapshot!(format!("index_of_a_document_{layout:?}"), shown(&document(200), layout, 300).1);
    }
}

#[test]
fn a_text_is_within_its_budget_and_says_no_less_with_more_room() {
    for tools in [set(), many(12), document(50)] {
        for layout in LAYOUTS {
            let floor = shown(&tools, layout, 1).1.chars().count();
            let mut before = 0;
            for tokens in (10..4_000).step_by(97) {
                let (offered, text) = shown(&tools, layout, tokens);
                let length = text.chars().count();
                assert!(length <= (tokens * 4).max(floor), "{layout:?} {tokens}: {length}");
                let form = form(&offered, &text, layout);
                assert!(form >= before, "{layout:?} {tokens}: {form} after {before}");
                before = form;
            }
            assert!(before >= 2, "{layout:?}");
        }
    }
}

/// The form of a text, the richer the more.
fn form(tools: &ToolSet, text: &str, layout: Layout) -> usize {
    let whole = match layout {
        Layout::Json => text.ends_with("}\n]"),
        Layout::List => !text.contains("One tool a line"),
        // Lines with all that is said of arguments look as those without.
        Layout::Lines => false,
        Layout::Operations => text.starts_with('{'),
    };
    match (tools.is_crowded(), whole) {
        (true, _) => usize::from(text.contains("Their names:")),
        (false, true) => 4,
        (false, false) => 2 + usize::from(text.contains("  # ")),
    }
}

#[test]
fn a_huge_document_costs_little_where_it_is_not_shown() {
    let tools = document(3_000);
    for layout in LAYOUTS {
        let (offered, text) = shown(&tools, layout, 8_000);
        assert!(offered.is_crowded());
        assert!(text.chars().count() <= 32_000);
        // What was worked out is shared: the schema that a call needs is made once.
        assert!(std::ptr::eq(tools.get("GET /even/0/{id}").unwrap(), offered.get("GET /even/0/{id}").unwrap()));
    }
}

#[test]
fn the_runtimes_own_tools_are_always_shown_whole() {
    let spawning = crate::tool::agent_tools::background(&["Reviewer".to_owned()]);
    let tools = many(40).with(spawning).unwrap();
    for tokens in [300, 1_000, 2_500] {
        let text = shown(&tools, Layout::Json, tokens).1;
        assert!(text.contains("Prepared roles: Reviewer."), "{text}");
        assert_eq!(text.matches("\"spawn_agent\"").count(), 1);
    }
    assert!(shown(&tools, Layout::Json, 300).1.contains("\nThere are 120 tools, "));
}

#[test]
fn the_tool_for_scripts_is_shown_whole_too() {
    let mut scripts = tool("execute_python_code", "Run a script, under these limits.", json!({"type": "object"}));
    scripts.kind = ToolKind::Script;
    let tools = many(40).with(vec![scripts]).unwrap();
    for layout in LAYOUTS {
        let text = shown(&tools, layout, 300).1;
        assert_eq!(text.matches("Run a script, under these limits.").count(), 1, "{text}");
        assert!(text.contains("There are 120 "), "{text}");
    }
}

#[test]
fn the_programs_own_tools_keep_their_names() {
    let schema = json!({"type": "object"});
    let own = tool("search_tools", "Search the shed.", schema.clone());
    let (tools, text) = shown(&many(40).with(vec![own]).unwrap(), Layout::List, 300);
    assert_eq!(tools.get("search_tools").unwrap().description, "Search the shed.");
    assert!(text.contains("shown here or not: see its arguments with describe_tool, then call it."), "{text}");
    let both = ["search_tools", "describe_tool"].map(|name| tool(name, "", schema.clone()));
    let tools = many(40).with(both.to_vec()).unwrap();
    assert!(tools.with_look_up(Layout::List, Budget(300)).unwrap().is_none());
    let text = tools.interface(Layout::List, Budget(300));
    assert!(text.starts_with("There are 122 tools, too many to show with their arguments; each can be called by its exact name, shown here or not. Their groups:\n"), "{text}");
    let document = json!({"openapi": "3.1.0", "paths": {
        "/{anything}": {"post": {}}, "/search_tools": {"post": {}}, "/x": {"get": {"operationId": "describe_tool"}},
    }});
    let tools = ToolSet::from_openapi(&document.to_string()).unwrap();
    assert!(tools.with_look_up(Layout::Operations, Budget(1)).unwrap().is_none());
}

#[test]
fn what_is_crowded_stays_so_in_a_log() {
    for (tools, layout) in [(many(40), Layout::Json), (document(200), Layout::Operations)] {
        let (offered, text) = shown(&tools, layout, 300);
        let loaded: ToolSet = serde_json::from_str(&serde_json::to_string(&offered).unwrap()).unwrap();
        assert!(loaded.is_crowded());
        assert_eq!(loaded.interface(layout, Budget(300)), text);
        assert_eq!(loaded.resolve_route("POST /search_tools").unwrap().tool.name, "search_tools");
    }
}

#[test]
fn groups_that_hold_most_are_parted_further() {
    let path = |number: usize| match number % 4 {
        0 => format!("/api/v1/charges/{number}"),
        1 => format!("/api/v1/{{account}}/refunds/{number}"),
        2 => format!("/api/v1/payouts/{number}"),
        _ => format!("/api/v2/payouts/{number}"),
    };
    let paths: Map<String, Json> = (0..80).map(|number| (path(number), json!({"get": {}}))).collect();
    let tools = ToolSet::from_openapi(&json!({"openapi": "3.1.0", "paths": paths}).to_string()).unwrap();
    let groups = |tools: &ToolSet| -> Vec<(String, usize)> {
        let groups = super::grouped(tools.shown());
        groups.into_iter().map(|(group, tools)| (group.into_owned(), tools.len())).collect()
    };
    let expected = [("api/v1/charges", 20), ("api/v1/refunds", 20), ("api/v1/payouts", 20), ("api/v2", 20)];
    assert_eq!(groups(&tools), expected.map(|(group, count)| (group.to_owned(), count)));
    let names = (0..60).map(|number| {
        let what = if number % 2 == 0 { "create" } else { "list" };
        tool(&format!("git-hub_{what}.{number}"), "", json!({"type": "object"}))
    });
    let expected = [("git-hub_create", 30), ("git-hub_list", 30)];
    assert_eq!(
        groups(&ToolSet::new(names.collect()).unwrap()),
        expected.map(|(group, count)| (group.to_owned(), count))
    );
}
