//! Code that was escaped once too often: one line that holds `\n` where Python wants line breaks.

/// A message of the user.
pub(super) const NOTE: &str =
    "the code came as one line with \\n spelled out in it and was unescaped once: escape line breaks once, not twice";

/// The code with its escapes read, or `None` where it is Python as it is, or may be.
pub(super) fn unescape(code: &str) -> Option<String> {
    let line = code.trim();
    if line.contains(['\n', '\r']) || !is_no_statement(line) {
        return None;
    }
    let text = read_escapes(line);
    text.contains('\n').then_some(text)
}

/// Whether this one line is a comment, or has a backslash where Python allows none: between its words.
fn is_no_statement(line: &str) -> bool {
    if line.starts_with('#') {
        return true;
    }
    let mut rest = line;
    // The letters that stand directly before a string say how it is read.
    let mut prefix = String::new();
    while let Some(first) = rest.chars().next() {
        match first {
            '\\' => return rest.len() > 1,
            '#' => return false,
            '"' | '\'' => match after_string(rest, first, prefix.contains(['f', 'F', 't', 'T'])) {
                Some(after) => rest = after,
                None => return false,
            },
            _ => rest = rest.strip_prefix(first).unwrap_or_default(),
        }
        if first.is_alphanumeric() || first == '_' {
            prefix.push(first);
        } else {
            prefix.clear();
        }
    }
    false
}

/// What follows a string, or `None` where it does not end, or may end elsewhere: in a replacement field the same
/// quotes may open another string.
fn after_string(text: &str, quote: char, has_fields: bool) -> Option<&str> {
    let triple = quote.to_string().repeat(3);
    let (end, mut rest) = match text.strip_prefix(triple.as_str()) {
        Some(rest) => (triple.as_str(), rest),
        None => (triple.get(..1)?, text.strip_prefix(quote)?),
    };
    let mut fields = 0usize;
    loop {
        if let Some(after) = rest.strip_prefix(end) {
            return (fields == 0).then_some(after);
        }
        let mut letters = rest.chars();
        match letters.next()? {
            '\\' => {
                letters.next()?;
            }
            '{' if has_fields => fields += 1,
            '}' if has_fields => fields = fields.saturating_sub(1),
            _ => {}
        }
        rest = letters.as_str();
    }
}

/// Reads the escapes of JSON, in which the code was given; what is none of them stays.
fn read_escapes(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        let mut letters = after.chars();
        let escape = letters.next();
        rest = letters.as_str();
        match escape {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some(same @ ('"' | '\\' | '/')) => text.push(same),
            Some(other) => text.extend(['\\', other]),
            None => text.push('\\'),
        }
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn one_line_of_several_is_unescaped_once() {
        let cases = [
            (r#"# dependencies = ["x"]\nimport x"#, "# dependencies = [\"x\"]\nimport x"),
            (r#"import os\nprint(\"a\\nb\")"#, "import os\nprint(\"a\\nb\")"),
            (r#"print("a")\nif True:\n\tprint('it\'s')"#, "print(\"a\")\nif True:\n\tprint('it\\'s')"),
            (r#"print(f"{a}")\nprint(1)"#, "print(f\"{a}\")\nprint(1)"),
            (r#""""doc"""\nimport os"#, "\"\"\"doc\"\"\"\nimport os"),
            ("x = 1\\n\n", "x = 1\n"),
            (r#"import re\nre.sub(r\"\\d\", \"\", s)"#, "import re\nre.sub(r\"\\d\", \"\", s)"),
        ];
        for (given, expected) in cases {
            assert_eq!(unescape(given).as_deref(), Some(expected), "{given}");
        }
    }

    #[test]
    fn what_may_be_python_is_left_alone() {
        let cases = [
            r#"print("a\nb")"#,
            r"print('a\'b\n')",
            r#"print("""a "quote" \n""")"#,
            r#"print(r"\n")"#,
            r"x = 1  # not \n here",
            r##"print("#\n")"##,
            r#"print(f"{d["\n"]}")"#,
            r#"print(f"{"\n".join(x)}")"#,
            r#"print("unclosed\n)"#,
            "print('a') # b\\n\nprint(2)",
            "# one comment\nprint('\\n')",
            "# a comment \\\\d",
            "x = 1 \\",
            "print(1)",
        ];
        for given in cases {
            assert_eq!(unescape(given), None, "{given}");
        }
    }
}
