use super::*;

fn read(text: &str) -> Result<(Value, Vec<RepairCode>), Code> {
    let mut reader = JsonReader::new(Settings::new(RepairPolicy::Default, ReadLimits::default()), 0);
    match reader.run(text, true) {
        Progress::Done => {
            let (value, repairs) = reader.into_value();
            let mut codes: Vec<_> = repairs.into_iter().map(|repair| repair.code).collect();
            codes.sort();
            codes.dedup();
            Ok((value, codes))
        }
        _ => Err(reader.into_fault().unwrap().code),
    }
}

fn reads(text: &str, json: &str, repairs: &[RepairCode]) {
    assert_eq!(
        read(text).map(|(value, codes)| (value.to_json(), codes)),
        Ok((json.to_owned(), repairs.to_vec())),
        "{text}"
    );
}

fn refuses(text: &str, code: Code) {
    assert_eq!(read(text).map(|(value, _)| value.to_json()), Err(code), "{text}");
}

#[test]
fn clean_json_keeps_its_spelling() {
    for json in [
        "{}",
        "[]",
        "0",
        "-0.0",
        "1E+2",
        "\"\"",
        "[[],{}]",
        "{\"b\":1,\"a\":123456789012345678901234567890}",
        "\"\\\"\\\\\"",
    ] {
        reads(json, json, &[]);
    }
    reads("\"\\u00e9\\ud83d\\ude00\\/\"", "\"é😀/\"", &[]);
}

#[test]
fn closing_brackets() {
    use RepairCode::*;
    reads("{\"a\":[1]]}", "{\"a\":[1]}", &[ExtraClosers]);
    refuses("{\"a\":[1}, \"b\":2}", Code::UnbalancedBrackets);
    refuses("{\"a\":[1}", Code::UnbalancedBrackets);
    refuses("{\"a\":[1]", Code::Truncated);
    reads("[1,2,]", "[1,2]", &[TrailingComma]);
    refuses("[1,,2]", Code::UnexpectedToken);
    refuses("[,]", Code::UnexpectedToken);
}

#[test]
fn quotes() {
    use RepairCode::*;
    reads("{'k': 'it\\'s \"so\"'}", "{\"k\":\"it's \\\"so\\\"\"}", &[SingleQuotes]);
    refuses("{'k': 'it's'}", Code::UnescapedQuote);
    reads("{“k”: “v \"w\"”}", "{\"k\":\"v \\\"w\\\"\"}", &[CurlyQuotes]);
    refuses("{“k”: “v\", \"x\": “y”}", Code::UnescapedQuote);
    reads("[\"\"\"a \"b\"\n\"\"\"]", "[\"a \\\"b\\\"\\n\"]", &[TripleQuotedString]);
    refuses("[\"\"\"a\\n\"\"\"]", Code::AmbiguousEscape);
    reads("[`a 'b'`]", "[\"a 'b'\"]", &[BacktickString]);
    refuses("[\"say \"yes\" now\"]", Code::UnescapedQuote);
    refuses("[\"a\" \"b\"]", Code::UnescapedQuote);
    reads("[\"a\"\n\"b\"]", "[\"a\",\"b\"]", &[MissingComma]);
    reads("{\"a\": 1 \"b\": 2}", "{\"a\":1,\"b\":2}", &[MissingComma]);
    refuses("{\"a\": \"x\"\n\"y\"}", Code::UnescapedQuote);
}

#[test]
fn escapes() {
    use RepairCode::*;
    reads(r#"["a\d\w\\"]"#, r#"["a\\d\\w\\"]"#, &[InvalidEscape]);
    refuses(r#"["a\d\n"]"#, Code::AmbiguousEscape);
    refuses(r#"["\n\d"]"#, Code::AmbiguousEscape);
    reads(r#"["\'\n"]"#, "[\"'\\n\"]", &[InvalidEscape]);
    reads(r#"["\underline"]"#, r#"["\\underline"]"#, &[InvalidEscape]);
    refuses(r#"["\ud800x"]"#, Code::LoneSurrogate);
    refuses(r#"["\udc00"]"#, Code::LoneSurrogate);
    refuses(r#"["\ud8"#, Code::Truncated);
}

#[test]
fn words_and_numbers() {
    use RepairCode::*;
    reads("[True, None]", "[true,null]", &[PythonLiteral]);
    reads("[TRUE, Null]", "[true,null]", &[LiteralCase]);
    reads("[.5, 5., +5, 1_000]", "[0.5,5.0,5,1000]", &[NumberForm]);
    for number in ["01", "1__0", "_1", "1_", "0x1f", "1/3", "1-2", "--1", "1e", ".", "2024-01-01", "1.2.3", "5$"] {
        assert!(read(&format!("[{number}]")).is_err(), "{number}");
    }
    refuses("[1e999]", Code::NonFiniteNumber);
    refuses("[-Infinity]", Code::NonFiniteNumber);
    refuses("[maybe]", Code::UnquotedValue);
    refuses("{\"a\": b c}", Code::UnquotedValue);
    reads("[1 2 3456]", "[1,2,3456]", &[RepairCode::MissingComma]);
    refuses("[1 000]", Code::InvalidNumber);
    refuses("[1. 5]", Code::InvalidNumber);
    refuses(&format!("[{}]", "9".repeat(1_001)), Code::NumberTooLarge);
}

#[test]
fn between_tokens() {
    use RepairCode::*;
    reads("{/*a*/\"k\" // b\n: 1 # c\n}", "{\"k\":1}", &[Comment]);
    refuses("[1, // ... more\n]", Code::ElidedContent);
    refuses("[1, ...]", Code::ElidedContent);
    refuses("[1, …]", Code::ElidedContent);
    reads("[1,\\n\u{a0}2]", "[1,2]", &[UnicodeWhitespace, EscapedWhitespace]);
    reads("{k: 1}", "{\"k\":1}", &[UnquotedKey]);
    refuses("{two words: 1}", Code::MissingColon);
    reads("{{\"k\": {{\"l\": 1}}}}", "{\"k\":{\"l\":1}}", &[DoubledBraces]);
    refuses("{{\"k\": 1}", Code::Truncated);
}

#[test]
fn keys_stand_once() {
    reads("{\"a\":1,\"a\":1}", "{\"a\":1}", &[RepairCode::DuplicateKeyDropped]);
    refuses("{\"a\":1,\"a\":2}", Code::DuplicateKey);
}

#[test]
fn a_number_is_no_key() {
    refuses("{7}", Code::UnexpectedToken);
    refuses("{\"a\": 1, -7: 2}", Code::UnexpectedToken);
}

#[test]
fn bounds() {
    refuses(&"[".repeat(200), Code::TooDeep);
    refuses(&"{{".repeat(200), Code::UnexpectedToken);
    refuses(&format!("[{}1]", " ".repeat(300_000)), Code::LimitExceeded);
}

#[test]
fn strictness_refuses_each_repair() {
    for text in [
        "[1,]",
        "['a']",
        "[True]",
        "{k:1}",
        "[1//\n]",
        "[\"\\d\"]",
        "[.5]",
        "[\"\n\"]",
        "[1\u{a0}]",
        "{{\"a\":1}}",
        "[[1]]]",
    ] {
        let mut reader = JsonReader::new(Settings::new(RepairPolicy::Strict, ReadLimits::default()), 0);
        if reader.run(text, true) == Progress::Failed {
            assert_eq!(reader.into_fault().unwrap().code, Code::RepairRefused, "{text}");
        } else {
            assert_eq!(text, "[[1]]]");
        }
    }
}

#[test]
fn a_fault_names_its_place() {
    let text = "{\"a\": [1, {\"b\": oops}]}";
    let mut reader = JsonReader::new(Settings::new(RepairPolicy::Default, ReadLimits::default()), 0);
    assert_eq!(reader.run(text, true), Progress::Failed);
    let fault = reader.into_fault().unwrap();
    assert_eq!(fault.pointer.as_deref(), Some("/a/1/b"));
    assert_eq!(fault.span.map(|span| span.of(text)), Some("oops"));
}
