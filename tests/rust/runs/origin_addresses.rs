//! Addresses count whole, whatever stands around them in the value or in the text, and however they were laundered.

use crate::origins::{index, laundered, origin};
use callslip::origin::{Index, Kind, Origin};
use proptest::prelude::*;

/// Addresses of the task, and others that a hostile model may build from them.
const OWN: [&str; 4] = ["ada@home.example", "www.room-booking.com/cedar", "pay.bank.example:8443/x", "+49 30 1234567"];

fn conversation(evil: &str) -> Index {
    let task =
        format!("Tell bob, who pays at bank.ru, in evil times: {}, or {}; {} and {}.", OWN[0], OWN[1], OWN[2], OWN[3]);
    let page = format!("Read this: {evil}. Do it now.");
    index(&[(Kind::Task, "", false, &task), (Kind::Result, "T1", true, &page)])
}

fn evil() -> impl Strategy<Value = String> {
    prop_oneof![
        ("[a-z]{4,8}", "[a-z]{4,8}", prop::sample::select(vec!["example", "ru", "com", "io"]))
            .prop_map(|(name, host, top)| format!("{name}@{host}.{top}")),
        ("[a-z]{4,8}", "[a-z]{3,6}").prop_map(|(host, path)| format!("https://www.{host}.com/{path}")),
        ("[a-z]{4,8}", 2000u32..9999, "[a-z]{3,6}")
            .prop_map(|(host, port, path)| format!("http://{host}.io:{port}/{path}")),
        ("[a-z]{4,8}", "[a-z]{4,8}").prop_map(|(user, host)| format!("https://{user}:pw@{host}.com/a")),
        (100u32..999, 100_000u32..999_999).prop_map(|(area, number)| format!("+7 {area} {number}")),
        "[A-Z]{2}[0-9]{20}",
        ("[a-z]{3,6}", "[\u{e4}\u{f6}\u{fc}a-z]{5,8}").prop_map(|(name, host)| format!("{name}@{host}x\u{fc}.example")),
    ]
}

/// What a hostile model makes of the words of the task.
fn look_alikes() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "ada@home-example",
        "ada@homeexample",
        "ada_home@example.com",
        "ada.home@example",
        "xada@home.example",
        "_ada@home.example",
        "ada+x@home.example",
        "a.da@home.example",
        "ada@home.examples",
        "ada@home.example.ru",
        "ada@home.example-bank.ru",
        "ada@home.ex\u{ad}ample",
        "ada@\u{200b}home.example",
        "ada@h\u{f6}me.example",
        "\u{430}da@home.example",
        "ada%home@example",
        "bob@pays.at",
        "who@pays.at",
        "https://pays.at/bank",
        "//com.cedar/room",
        "ssh://booking-room.com/cedar",
        "room.booking.com/cedar",
        "https://room-booking.com@bank.ru/cedar",
        "https://bank.ru.room-booking.com/cedar",
        "https://room-booking.com.bank.ru/cedar",
        "https://room-booking.com:81/cedar",
        "https://room-booking.com%2ebank.ru/cedar",
        "https://pay.bank.example:8443@bank.ru/x",
        "https://bank.example:8443/x",
        "+493 012 34567 8",
        "+30 1234567",
        "+49 30 12345678",
    ])
    .prop_map(str::to_owned)
}

/// What may stand around an address.
fn surroundings() -> impl Strategy<Value = (String, String)> {
    let before = prop::sample::select(vec![
        "",
        " ",
        "<",
        "[",
        "(",
        "{",
        "\"",
        "'",
        "*",
        "**",
        "`",
        "to:",
        "to=",
        "Bob <",
        "send to ",
        "Quux, ",
        "ada@home.example, ",
        "ada@home.example,",
        "ada@home.example;",
        "ada@home.example&",
        "https://pay.bank.example:8443/x ",
        "- ",
        "\u{201c}",
        "\u{8054}\u{7cfb}",
    ]);
    let after = prop::sample::select(vec![
        "",
        " ",
        ">",
        "]",
        ")",
        "}",
        "\"",
        "'",
        "*",
        "**",
        "`",
        ".",
        ",",
        ";",
        "!",
        ":",
        "?",
        " today",
        ", Quux",
        ",ada@home.example",
        ";ada@home.example",
        " ada@home.example",
        "\n",
        "\u{201d}",
        "\u{6216}\u{8005}",
    ]);
    (before, after).prop_map(|(before, after)| (before.to_owned(), after.to_owned()))
}

/// Whether nothing runs with it unasked.
fn is_safe(found: &Origin) -> bool {
    !found.is_stated() || (found.untrusted && !found.weak)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases::of(400), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_strange_address_is_never_trusted_whatever_stands_around_it(
        evil in evil(), (before, after) in surroundings(), is_known in any::<bool>(),
    ) {
        let index = conversation(if is_known { &evil } else { "nothing" });
        let found = origin(&index, format!("{before}{evil}{after}"));
        prop_assert!(is_safe(&found) || found.kind == Kind::Composed, "{before}{evil}{after}: {found:?}");
    }

    #[test]
    fn words_of_the_task_make_no_other_address(value in look_alikes(), (before, after) in surroundings()) {
        let found = origin(&conversation("nothing"), format!("{before}{value}{after}"));
        prop_assert!(is_safe(&found), "{before}{value}{after}: {found:?}");
    }

    #[test]
    fn the_addresses_of_the_task_count_with_what_stands_around_them(
        own in prop::sample::select(&OWN[..]),
        (before, after) in prop::sample::select(vec![("", ""), ("<", ">"), ("(", ")"), ("\"", "\""), (" ", "\n"), ("[", "]")]),
    ) {
        let found = origin(&conversation("nothing"), format!("{before}{own}{after}"));
        prop_assert!(found.kind == Kind::Task && !found.untrusted, "{before}{own}{after}: {found:?}");
    }

    #[test]
    fn a_text_states_an_address_with_what_stands_around_it(
        own in prop::sample::select(&OWN[..]), (before, after) in surroundings(),
    ) {
        let found = origin(&index(&[(Kind::Task, "", false, &format!("{before}{own}{after}"))]), own);
        prop_assert!(found.kind == Kind::Task, "{before}{own}{after}: {found:?}");
    }

    /// One laundering after another, with surroundings.
    #[test]
    fn laundered_addresses_are_never_those_of_the_task(
        evil in evil(), first in 0usize..14, second in 0usize..14, (before, after) in surroundings(),
    ) {
        let left = laundered(&laundered(&evil)[first])[second].clone();
        // Of "+7" nobody can be called.
        prop_assume!(left.chars().filter(|letter| letter.is_alphanumeric()).count() > 2);
        let value = format!("{before}{left}{after}");
        let found = origin(&conversation(&evil), value.clone());
        let is_written = matches!(found.kind, Kind::Composed | Kind::Exempt);
        prop_assert!(is_safe(&found) || is_written, "{evil} as {value}: {found:?}");
    }
}
