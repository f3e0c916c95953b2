//! The folders of the core are floors: imports point down only, pyo3 is named on the highest floor alone, and no file is long.

use std::fs;
use std::path::{Path, PathBuf};

/// From the lowest to the highest.
const FLOORS: [&str; 14] = [
    "hex",
    "json_pointer",
    "signal",
    "origin",
    "part",
    "codes",
    "reply",
    "ticket",
    "tool",
    "protocol",
    "run",
    "store",
    "live",
    "py",
];
/// What every floor may name.
const LOWEST: [&str; 3] = ["hex", "json_pointer", "signal"];
/// Scripts know nothing of runs, and only the border knows scripts.
const ASIDE: &str = "sandbox";

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The folder of each source file, its path and its text; the launcher is a program of its own.
pub(crate) fn rooms() -> Vec<(String, PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    sources(&root, &mut paths);
    let room_of = |path: &Path| {
        let inside = path.strip_prefix(&root).unwrap().with_extension("");
        inside.iter().next().unwrap().to_str().unwrap().to_owned()
    };
    let all = paths.into_iter().map(|path| (room_of(&path), fs::read_to_string(&path).unwrap(), path));
    all.map(|(room, text, path)| (room, path, text)).filter(|(room, ..)| room != "launcher" && room != "lib").collect()
}

/// The folders that a source names as `crate::folder`.
fn named(text: &str) -> Vec<String> {
    let word = |rest: &str| rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
    text.split("crate::").skip(1).map(word).collect()
}

#[test]
fn imports_point_down() {
    let floor = |room: &str| FLOORS.iter().position(|known| *known == room);
    let mut wrong = Vec::new();
    for (room, path, text) in rooms() {
        for target in named(&text) {
            let fits = if room == ASIDE || target == ASIDE {
                room == target || room == "py" || LOWEST.contains(&target.as_str())
            } else {
                let known = "expected a folder of FLOORS: got another one; add it";
                floor(&target).unwrap_or_else(|| panic!("{known}: {target}"))
                    <= floor(&room).unwrap_or_else(|| panic!("{known}: {room}"))
            };
            if !fits {
                wrong.push(format!("{} imports {target}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn only_the_border_names_pyo3() {
    let found: Vec<_> = rooms()
        .into_iter()
        .filter(|(room, _, text)| room != "py" && text.contains("pyo3"))
        .map(|(_, p, _)| p)
        .collect();
    assert!(found.is_empty(), "{found:?}");
}

/// Only the first column may be read by its place, where it is the only one: a column that is added moves the others.
#[test]
fn columns_of_postgres_are_read_by_name() {
    let mut found = Vec::new();
    for (_, path, text) in rooms().into_iter().filter(|(_, path, _)| path.to_string_lossy().contains("postgres")) {
        for rest in text.split("row.get").skip(1) {
            let place: String =
                rest.chars().skip_while(|c| *c != '(').skip(1).take_while(char::is_ascii_digit).collect();
            if !place.is_empty() && place != "0" {
                found.push(format!("{}: row.get{}", path.display(), rest.lines().next().unwrap_or_default()));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn no_file_is_long() {
    const LONGEST: usize = 500;
    let found: Vec<_> =
        rooms().into_iter().filter(|(.., text)| text.lines().count() > LONGEST).map(|(_, p, _)| p).collect();
    assert!(found.is_empty(), "{found:?}");
}
