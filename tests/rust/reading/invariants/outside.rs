//! What holds of texts from elsewhere that are no replies: documents, schemas, logs and declarations of scripts. Reading
//! one never panics, and what was read reads the same when it is written again.

use super::Input;
use callslip::reply::Value;
use callslip::run::{read_contents, read_log, replay, write_log};
use callslip::sandbox::script::Script;
use callslip::tool::ToolSet;
use callslip::tool::openapi::Api;
use callslip::tool::schema::Checker;
use serde_json::Value as Json;

/// The document of an API, in JSON or YAML.
pub(super) fn openapi(input: Input<'_>) {
    let api = match Api::read(input.text) {
        Ok(api) => api,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let json = Api::to_json(input.text).expect("a document that was read has a JSON form");
    let again = Api::parse(&json).expect("the JSON form of a document is a document");
    assert!(api.names().eq(again.names()), "the operations of the document and of its JSON form");
    let _ = (api.faults(), api.unreadable());
    if let Ok(tools) = ToolSet::from_openapi(&json) {
        for tool in tools.iter() {
            assert!(!tools.signature(tool).is_empty(), "{tool:?}");
        }
    }
}

/// A schema, and the arguments of a call behind U+001F.
pub(super) fn schema(input: Input<'_>) {
    let text = String::from_utf8_lossy(input.text);
    let (schema, arguments) = text.split_once('\u{1f}').unwrap_or((&text, "{}"));
    let (Ok(schema), Ok(arguments)) = (serde_json::from_str::<Json>(schema), serde_json::from_str::<Value>(arguments))
    else {
        return;
    };
    let compiled = Checker::default();
    if let Err(cause) = compiled.compile_loosely(&schema) {
        return assert!(!cause.is_empty());
    }
    let admitted = compiled.admits(&schema, &arguments);
    match compiled.check(&schema, &arguments) {
        Ok(checked) => {
            let again = compiled.check(&schema, &Value::Object(checked.arguments.clone()));
            let again = again.expect("arguments that passed pass again");
            assert_eq!(again.arguments, checked.arguments, "what was coerced once stays");
            assert!(!admitted || checked.coerced.is_empty(), "arguments that pass as they are: {:?}", checked.coerced);
        }
        Err(problems) => {
            assert!(!admitted, "admitted: {problems:?}");
            assert!(!problems.is_empty());
        }
    }
}

/// The log of a run, a line for each event.
pub(super) fn log(input: Input<'_>) {
    let text = String::from_utf8_lossy(input.text);
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let _ = read_contents(&lines);
    let records = match read_log(&lines) {
        Ok(records) => records,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let written = write_log::<serde_json::Error>(&records, |_| Ok(None)).expect("every event has a JSON form");
    let again = read_log(&written).expect("a log that was written can be read");
    let rewritten = write_log::<serde_json::Error>(&again, |_| Ok(None)).expect("every event has a JSON form");
    assert_eq!(rewritten, written, "a log that was written and read");
    if let Err(error) = replay(&records) {
        assert!(!error.to_string().is_empty());
    }
}

/// A script with the declaration of what it needs.
pub(super) fn declaration(input: Input<'_>) {
    let Ok(script) = Script::read(&String::from_utf8_lossy(input.text)) else { return };
    let _ = script.check_python("3.11.7");
    assert_eq!(script.names.len(), script.dependencies.len(), "a name for each dependency");
    for dependency in &script.dependencies {
        let quoted = Json::from(dependency.as_str());
        let alone = Script::read(&format!("# dependencies = [{quoted}]\nprint()\n"));
        let alone = alone.expect("a dependency as it is written is one");
        assert_eq!(alone.dependencies, [dependency.as_str()], "a dependency that was written and read");
    }
}
