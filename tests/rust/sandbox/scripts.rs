//! What scripts declare: every case is read or refused as expected, and nothing but names and versions gets through.

use callslip::sandbox::script::Script;
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use std::path::Path;

fn cases(path: &str) -> Vec<Json> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What came of a script, as the cases write it down.
fn outcome(code: &str) -> Json {
    let script = match Script::read(code) {
        Ok(script) => script,
        Err(refused) => return json!({"refused": refused.code.as_str(), "message": refused.message}),
    };
    assert_eq!(script.names.len(), script.dependencies.len());
    let mut said = json!({"dependencies": script.dependencies});
    if let Some(python) = script.requires_python {
        said["requires_python"] = json!(python);
    }
    if !script.hints.is_empty() {
        said["hints"] = json!(script.hints);
    }
    if script.code != code {
        said["code"] = json!(script.code);
    }
    said
}

#[test]
fn own_cases() {
    let cases = cases("tests/data/scripts.jsonl");
    assert!(cases.len() >= 130);
    for case in cases {
        assert_eq!(outcome(case["code"].as_str().unwrap()), case["expect"], "{}", case["id"]);
    }
}

/// Other people's scripts.
#[test]
#[ignore = "make test-shared runs it"]
fn shared_cases() {
    let folder = std::env::var("CALLSLIP_SHARED").unwrap();
    for case in cases(&format!("{folder}/conformance/hostile_scripts.jsonl")) {
        let read = Script::read(case["code"].as_str().unwrap());
        if case["check"]["kind"] == "deps" && case["check"]["ok"] == false {
            assert_eq!(read.unwrap_err().code.as_str(), "dependency_rejected", "{}", case["id"]);
        } else {
            assert_eq!(read.unwrap().code, case["code"], "{}", case["id"]);
        }
    }
}

/// Pieces of requirements, put together in any order.
fn requirement() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => prop::sample::select(vec![
            "requests", "x", "A_b", "-", ".", "_", "[", "]", "[a,b]", ",", " ", "\t", "\n", "\\", "@", ">=", "==", "===",
            "~=", "!=", "<", "1", "2.*", "1!0", "+local", "a1", ".dev0", ";", "python_version", "sys_platform", "in",
            "not in", "and", "or", "'3.9'", "\"linux\"", "'", "\"", "(", ")", "${HOME}", "$", "://", "-e", "--index-url",
            "extra", "os_name", "\u{435}", "\u{0}", "99999999999999999999",
        ])
        .prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn what_is_accepted_is_a_name_and_versions(written in prop::collection::vec(requirement(), 0..4)) {
        let listed = serde_json::to_string(&written).unwrap();
        let Ok(script) = Script::read(&format!("# dependencies = {listed}\nprint(1)")) else { return Ok(()) };
        for (text, name) in script.dependencies.iter().zip(&script.names) {
            prop_assert!(text.starts_with(name.as_str()), "{text:?}");
            prop_assert!(name.starts_with(|first: char| first.is_ascii_alphanumeric()), "{name:?}");
            prop_assert!(text.chars().all(|letter| matches!(letter, ' '..='~')), "{text:?}");
            for odd in ["$", "@", "/", "\\", "%", ":", "==="] {
                prop_assert!(!text.contains(odd), "{text:?}");
            }
        }
        let again = serde_json::to_string(&script.dependencies).unwrap();
        let again = Script::read(&format!("# dependencies = {again}\nprint(1)"));
        prop_assert_eq!(again.unwrap().dependencies, script.dependencies);
    }

    #[test]
    fn plain_requirements_are_accepted(
        written in "[A-Za-z]([A-Za-z0-9._-]{0,20}[A-Za-z0-9])?( ?\\[[a-z]{1,5}(, ?[a-z]{1,5})?\\])?( ?(>=|==|<|!=|~=) ?[0-9]{1,3}\\.[0-9]{1,3}){0,1}",
    ) {
        let script = Script::read(&format!("# dependencies = [\"{written}\"]\nprint(1)"));
        prop_assert!(script.is_ok(), "{:?}", script);
    }

    #[test]
    fn no_script_is_too_odd_to_read(
        pieces in prop::collection::vec(prop_oneof![
            2 => prop::sample::select(vec![
                "# dependencies = [", "\"six\"", "]", "\n", "\r", "# ///", " script", "#", "\\n", "\\\"", "\"", "'", "\"\"\"", "f",
                "{", "}", "print(1)", "# requires-python = ", "\">=3\"", "[tool.uv]", "\\", "\u{feff}", "\u{0}", "=", " ",
            ]).prop_map(str::to_owned),
            1 => any::<String>(),
        ], 0..16)
    ) {
        let code = pieces.concat();
        if let Ok(script) = Script::read(&code) {
            prop_assert!(!script.code.contains('\0'));
            // One line is all that is ever changed.
            let code = code.strip_prefix('\u{feff}').unwrap_or(&code);
            prop_assert!(script.code == code || !code.trim().contains(['\n', '\r']), "{:?}", script.code);
        }
    }
}
