//! Comments that look like a declaration but are not one.

use super::comment;

/// The words that such comments begin with.
const WORDS: [&str; 3] = ["dependencies", "dependency", "deps"];

/// A hint for the first of them.
pub(super) fn hint(lines: &[&str]) -> Option<String> {
    let code = lines.iter().position(|line| comment(line).is_none() && !line.trim().is_empty()).unwrap_or(lines.len());
    lines.iter().enumerate().find_map(|(at, line)| {
        let text = comment(line)?;
        let next = lines.get(at + 1).and_then(|next| comment(next)).unwrap_or_default();
        let number = at + 1;
        if at > code && is_meant(text, next) {
            return Some(format!(
                "line {number} declares nothing, because it comes after code or a docstring: \
                 put # dependencies = [\"name\"] into the first line"
            ));
        }
        if is_meant(text, next) {
            return Some(format!(
                "line {number} declares nothing: write # dependencies = [\"name\"], with an equals sign and a list"
            ));
        }
        let is_block = !line.starts_with([' ', '\t']) && squeezed(text) == "///script";
        is_block.then(|| {
            format!("line {number} opens no block: write # dependencies = [\"name\"] as the first line instead")
        })
    })
}

fn is_meant(text: &str, next: &str) -> bool {
    let text = text.trim_start_matches('#').trim().to_ascii_lowercase();
    let rest = WORDS.iter().find_map(|word| {
        let rest = text.strip_prefix(word)?.trim_start();
        let rest = rest.strip_prefix('+').unwrap_or(rest);
        rest.strip_prefix([':', '='])
    });
    rest.map(str::trim).is_some_and(|rest| match rest {
        "" => next.trim_start().starts_with('-'),
        "none" | "none." | "[]" | "n/a" | "-" => false,
        _ => true,
    })
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_whitespace()).collect::<String>().to_ascii_lowercase()
}
