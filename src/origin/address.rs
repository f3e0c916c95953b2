//! Addresses, which count only whole: mail, URLs, bank accounts, telephone numbers.

use super::date;
use super::from::How;
use super::look::{Look, Scope, Spot};
use super::token::{Words, digit};
use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Mail,
    Url,
    Account,
    Telephone,
}

/// Endings of names that are hosts without a scheme, too; `report.pdf` is none.
const TOP: [&str; 24] = [
    "com", "org", "net", "io", "dev", "edu", "gov", "co", "uk", "de", "fr", "info", "xyz", "biz", "app", "ai", "eu",
    "us", "es", "it", "nl", "ch", "jp", "br",
];

/// Compatibility forms and case don't count in an address; look-alikes and accents do.
fn folded(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.nfkc().collect::<String>().to_lowercase() }
}

/// The value without what stands around it, in compatibility forms.
fn compatible(value: &str) -> Cow<'_, str> {
    let value = value.trim();
    if value.is_ascii() { Cow::Borrowed(value) } else { Cow::Owned(value.nfkc().collect()) }
}

fn is_host(name: &str) -> bool {
    let name = name.split_once(':').map_or(name, |(host, _)| host);
    let labels: Vec<&str> = name.split('.').collect();
    labels.len() > 1
        && labels.iter().all(|label| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-'))
        && labels.last().is_some_and(|last| last.len() > 1 && last.chars().all(char::is_alphabetic))
}

fn is_mail(text: &str) -> bool {
    text.split_once('@').is_some_and(|(name, host)| {
        !name.is_empty() && !name.contains(['/', ':', '(', ')']) && !host.contains('@') && is_host(host)
    })
}

/// Whether a text in compatibility forms begins with a prefix of ASCII letters.
fn starts_with(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// Without the parts that don't change where a URL leads.
fn stripped(url: &str) -> &str {
    let mut core = url;
    for prefix in ["https://", "http://", "mailto:", "www."] {
        if starts_with(core, prefix) {
            core = core.get(prefix.len()..).unwrap_or_default();
        }
    }
    core.trim_end_matches('/')
}

fn is_account(text: &str) -> bool {
    if !text.starts_with(|c: char| c.is_ascii_uppercase()) {
        return false;
    }
    let compact: Vec<char> = text.chars().filter(|c| *c != ' ').collect();
    let at = |range: std::ops::Range<usize>, fits: fn(&char) -> bool| {
        compact.get(range).is_some_and(|part| part.iter().all(fits))
    };
    (14..=34).contains(&compact.len())
        && at(0..2, char::is_ascii_uppercase)
        && at(2..4, char::is_ascii_digit)
        && at(4..compact.len(), |c| c.is_ascii_uppercase() || c.is_ascii_digit())
        && text.split(' ').all(|group| !group.is_empty())
}

fn is_telephone(text: &str) -> bool {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    (7..=15).contains(&digits)
        && text.chars().all(|c| c.is_ascii_digit() || matches!(c, ' ' | '-' | '.' | '/' | '(' | ')' | '+'))
        && text.contains([' ', '-', '(', '+', '/', '.'])
        && text.parse::<f64>().is_err()
        && date::read(text).is_empty()
}

impl Address {
    /// What kind of address a whole value is.
    pub(crate) fn of(value: &str) -> Option<Self> {
        let value = compatible(value);
        let is_url = |scheme: &str| starts_with(&value, scheme);
        if is_account(&value) {
            return Some(Self::Account);
        }
        if is_telephone(&value) {
            return Some(Self::Telephone);
        }
        if value.contains(char::is_whitespace) {
            return None;
        }
        if is_mail(stripped(&value)) && !is_url("http") {
            return Some(Self::Mail);
        }
        if is_url("http://") || is_url("https://") || is_url("www.") || is_url("ftp://") {
            return Some(Self::Url);
        }
        let host = value.split(['/', '?', '#']).next().unwrap_or_default();
        let top = host.rsplit('.').next().map(folded).unwrap_or_default();
        let is_known = TOP.contains(&top.trim_end_matches(|c: char| c == ':' || c.is_ascii_digit()));
        // Names of files have one ending.
        let is_below = host.split('.').count() > 2;
        (is_host(host) && (is_known || is_below)).then_some(Self::Url)
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether the characters before and behind a place leave the address whole.
fn is_whole(kind: Address, before: &str, after: &str, may_go_on: bool) -> bool {
    let last = before.chars().next_back();
    let mut next = after.chars();
    let (first, second) = (next.next(), next.next());
    let goes_on = |marks: &str| first.is_some_and(|c| marks.contains(c)) && second.is_some_and(is_word);
    match kind {
        Address::Mail => {
            !last.is_some_and(|c| is_word(c) || "@.+-".contains(c))
                && !first.is_some_and(|c| is_word(c) || "@-".contains(c))
                && !goes_on(".")
        }
        Address::Url => {
            let is_www = before.len() >= 4 && before.get(before.len() - 4..).is_some_and(|www| folded(www) == "www.");
            let start = if is_www { before.get(..before.len() - 4).unwrap_or_default() } else { before };
            let last = start.chars().next_back();
            let is_start = start.ends_with("://") || !last.is_some_and(|c| is_word(c) || "@.+-/%".contains(c));
            let path = if may_go_on { "." } else { "./?&=#:" };
            is_start && !first.is_some_and(|c| is_word(c) || "@-%".contains(c)) && !goes_on(path)
        }
        Address::Account => !last.is_some_and(is_word) && !first.is_some_and(is_word),
        Address::Telephone => {
            let is_joined = |mark: Option<char>, digit_there: bool| {
                mark.is_some_and(is_word) || (mark.is_some_and(|c| "-./".contains(c)) && digit_there)
            };
            let digit_before = before.chars().rev().nth(1).is_some_and(|c| digit(c).is_some());
            !is_joined(last, digit_before) && !is_joined(first, second.is_some_and(|c| digit(c).is_some()))
        }
    }
}

/// Moves a place by characters that are no tokens, such as a last `-`.
fn widened(text: &str, span: (usize, usize), core: &str) -> Option<(usize, usize)> {
    let leading = core.chars().take_while(|c| !c.is_alphanumeric()).count();
    let trailing = core.chars().rev().take_while(|c| !c.is_alphanumeric()).count();
    let before: usize = text.get(..span.0)?.chars().rev().take(leading).map(char::len_utf8).sum();
    let after: usize = text.get(span.1..)?.chars().take(trailing).map(char::len_utf8).sum();
    Some((span.0 - before, span.1 + after))
}

impl Look<'_> {
    /// Where a whole address stands. With `may_go_on`, a URL may go on behind it.
    fn whole(&mut self, scope: Scope, kind: Address, core: &str, may_go_on: bool) -> Vec<Spot> {
        let wanted = folded(core);
        let is_loose = matches!(kind, Address::Account | Address::Telephone);
        self.run(scope, &Words::of(core), &mut |text, span| {
            let span = if is_loose { span } else { widened(text, span, core)? };
            let is_same = is_loose || folded(text.get(span.0..span.1)?) == wanted;
            let (before, after) = (text.get(..span.0)?, text.get(span.1..)?);
            (is_same && is_whole(kind, before, after, may_go_on)).then_some(span)
        })
    }

    /// Where an address stands: whole, or a URL in parts. The flag says that some part is in untrusted texts alone.
    pub(crate) fn address(&mut self, scope: Scope, kind: Address, value: &str) -> Option<(Vec<Spot>, How, bool)> {
        let value = compatible(value);
        let core = if matches!(kind, Address::Mail | Address::Url) { stripped(&value) } else { &value };
        let spots = self.whole(scope, kind, core, false);
        if !spots.is_empty() {
            let untrusted = self.is_untrusted(&spots);
            return Some((spots, How::Address, untrusted));
        }
        if kind != Address::Url {
            return None;
        }
        let mut parts = core.split(['/', '?', '&', '=', '#']).filter(|part| !Words::of(part).is_empty());
        let host = self.whole(scope, kind, parts.next()?, true);
        let mut untrusted = self.is_untrusted(&host);
        if host.is_empty() {
            return None;
        }
        for part in parts {
            let spots = self.run(scope, &Words::of(part), &mut |_, span| Some(span));
            if spots.is_empty() {
                return None;
            }
            untrusted |= self.is_untrusted(&spots);
        }
        Some((host, How::Parts, untrusted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_text() {
        for (value, kind) in [
            ("mark.black-2134@gmail.com", Some(Address::Mail)),
            ("HTTPS://www.my-website-234.com/random", Some(Address::Url)),
            ("room-booking.com/cedar", Some(Address::Url)),
            ("US133000000121212121212", Some(Address::Account)),
            ("DE89 3704 0044 0532 0130 00", Some(Address::Account)),
            ("+1 415 555 0147", Some(Address::Telephone)),
            ("ｄｏｒａ＠ｇｍａｉｌ．ｃｏｍ", Some(Address::Mail)),
            ("2026-03-14", None),
            ("report.pdf", None),
            ("1234567.89", None),
            ("Riverside View Hotel", None),
        ] {
            assert_eq!(Address::of(value), kind, "{value}");
        }
    }

    #[test]
    fn a_longer_address_is_another_one() {
        assert!(!is_whole(Address::Mail, "to ", ".evil.com", false));
        assert!(is_whole(Address::Mail, "<", ">.", false) && is_whole(Address::Mail, "", ". Then", false));
        assert!(!is_whole(Address::Url, "https://evil.io/", "", false));
        assert!(is_whole(Address::Url, "https://WWW.", "", false));
        assert!(!is_whole(Address::Url, "", "/path", false) && is_whole(Address::Url, "", "/path", true));
        assert!(!is_whole(Address::Telephone, "+1-", "", false));
    }
}
