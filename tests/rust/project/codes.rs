//! The catalogue of codes in the docs is what the code says: `make codes` writes it.

use callslip::reply::{Code, RepairCode};
use std::path::Path;

const INTRODUCTION: &str = "\
Written by `make codes` from the code. The names are stable: they stand in logs, in `Violation.code` and in
`Repair.code`.";
const VIOLATIONS: &str = "\
The reply breaks the protocol: nothing of it is executed, and the model is told what, where and how else. A code after
a colon says what is wrong inside the arguments: `args_invalid:truncated`.";
const REPAIRS: &str = "\
The reply departs from the syntax and has exactly one sensible reading: it is taken, and the repair is recorded with
its place.";

fn table<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let rows: Vec<String> =
        rows.map(|(name, meaning)| format!("| `{name}` | {} |\n", meaning.replace('|', "\\|"))).collect();
    format!("| code | meaning |\n|---|---|\n{}", rows.concat())
}

fn catalogue() -> String {
    format!(
        "# Codes\n\n{INTRODUCTION}\n\n## Violations\n\n{VIOLATIONS}\n\n{}\n## Repairs\n\n{REPAIRS}\n\n{}",
        table(Code::ALL.iter().map(|code| (code.name(), code.meaning()))),
        table(RepairCode::ALL.iter().map(|code| (code.name(), code.meaning()))),
    )
}

#[test]
fn the_docs_list_every_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/codes.md");
    let expected = catalogue();
    if std::env::var_os("CALLSLIP_WRITE_CODES").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == expected, "docs/reference/codes.md is not what the code says: run `make codes`");
}
