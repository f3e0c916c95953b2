//! Why an installation failed, in a few words that the model can do something with.

/// What is shown of the installer's own words.
const SHOWN: usize = 500;

/// The reason in what the installer said.
pub(super) fn reason(lines: &[String], exit: Option<i32>) -> String {
    let said = flat(lines);
    let unknown = names_before(&said, " was not found in the package registry");
    if !unknown.is_empty() {
        let (names, are) = (unknown.join(", "), if unknown.len() == 1 { "is no package" } else { "are no packages" });
        return format!("{names} {are} of the index: check the name, or write the script without it");
    }
    let mut unbuilt = names_after(&said, "Wheels are required for `");
    if unbuilt.is_empty() {
        unbuilt = names_before(&said, " has no usable wheels");
    }
    if unbuilt.is_empty() && said.contains("building from source is disabled") {
        unbuilt.push("one of the packages".to_owned());
    }
    if !unbuilt.is_empty() {
        let names = unbuilt.join(", ");
        return format!(
            "{names} would have to be built, because there is no wheel for this Python and machine, and nothing is built \
             here: choose another version or another package"
        );
    }
    if said.contains("Failed to fetch") || said.contains("error sending request") || said.contains("Request failed") {
        let cause = lines.iter().rev().filter_map(|line| line.trim().strip_prefix("cause: "));
        let cause = cause.into_iter().find(|cause| !cause.contains("://")).unwrap_or("no answer");
        return format!("the package index can't be reached ({}): write the script without packages", truncate(cause));
    }
    if let Some((_, why)) = said.split_once("Because ") {
        let why = why.split("hint:").next().unwrap_or_default();
        let why = why.replace(", we can conclude that your requirements are unsatisfiable.", "");
        return format!("the packages don't fit together: because {}; ask for other versions", truncate(why.trim()));
    }
    if let Some((_, error)) = said.split_once("error: ") {
        return format!("the packages can't be installed: {}", truncate(error));
    }
    let exit = exit.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
    format!("the packages can't be installed: the installer ended with {exit}")
}

/// All lines as one, without the strokes that some versions draw.
fn flat(lines: &[String]) -> String {
    let words = lines.iter().flat_map(|line| line.split_whitespace());
    words.filter(|word| !matches!(*word, "×" | "│" | "╰─▶" | "├─▶")).collect::<Vec<_>>().join(" ")
}

fn names_before(said: &str, words: &str) -> Vec<String> {
    let mut pieces: Vec<&str> = said.split(words).collect();
    pieces.pop();
    unique(pieces.iter().filter_map(|piece| piece.rsplit(' ').next()))
}

fn names_after(said: &str, words: &str) -> Vec<String> {
    unique(said.split(words).skip(1).filter_map(|piece| piece.split('`').next()))
}

fn unique<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names.map(|name| name.trim_matches('`')).filter(|name| !name.is_empty() && name.len() <= 200) {
        if !all.iter().any(|known| known == name) {
            all.push(name.to_owned());
        }
    }
    all
}

fn truncate(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::reason;

    fn of(said: &str) -> String {
        let lines: Vec<String> = said.lines().map(str::to_owned).collect();
        reason(&lines, Some(1))
    }

    #[test]
    fn an_invented_name_is_told_by_name() {
        let said = "error: No solution found when resolving dependencies\n  cause: Because fastpandas was not found in the \
                    package registry and you require fastpandas, we can conclude that your requirements are unsatisfiable.";
        let drawn = "  × No solution found when resolving dependencies:\n  ╰─▶ Because fastpandas was not found in the\n      \
                     package registry and you require fastpandas, we can conclude that";
        let expected = "fastpandas is no package of the index: check the name, or write the script without it";
        assert_eq!(of(said), expected);
        assert_eq!(of(drawn), expected);
    }

    #[test]
    fn what_has_no_wheel_would_be_built() {
        let said = "  cause: Because numpy<=1.9.3 has no usable wheels and only the following versions of numpy are available:\n\
                    hint: Wheels are required for `numpy` because building from source is disabled for all packages";
        let expected = "numpy would have to be built, because there is no wheel for this Python and machine, and nothing is \
                        built here: choose another version or another package";
        assert_eq!(of(said), expected);
    }

    #[test]
    fn versions_that_do_not_fit_are_told_in_the_installers_words() {
        let said = "error: No solution found when resolving dependencies\n  cause: Because only idna<=3.20 is available and you \
                    require idna>=99, we can conclude that your requirements are unsatisfiable.";
        assert_eq!(
            of(said),
            "the packages don't fit together: because only idna<=3.20 is available and you require idna>=99; ask for other \
             versions"
        );
    }

    #[test]
    fn an_index_out_of_reach_is_told_without_its_address() {
        let said = "error: Failed to fetch: http://10.0.0.1:9/simple/six/\n  cause: error sending request for url \
                    (http://10.0.0.1:9/simple/six/)\n  cause: client error (Connect)\n  cause: Connection refused (os error 111)";
        let expected =
            "the package index can't be reached (Connection refused (os error 111)): write the script without packages";
        assert_eq!(of(said), expected);
    }

    #[test]
    fn whatever_else_it_says_is_cut() {
        assert_eq!(of("error: odd"), "the packages can't be installed: odd");
        assert_eq!(of(""), "the packages can't be installed: the installer ended with exit code 1");
        assert!(of(&format!("error: {}", "x".repeat(9000))).len() < 600);
    }
}
