//! Addresses, which count only whole: mail, URLs, bank accounts, telephone numbers.

use super::date;
use super::from::How;
use super::look::{Look, Scope, Spot};
use super::token::{Words, digit, is_single, tokens};
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

/// Characters without width: they change an address, and nobody sees them.
fn is_hidden(c: char) -> bool {
    matches!(u32::from(c), 0xad | 0x34f | 0x61c | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x2064 | 0xfe00..=0xfe0f | 0xfeff)
}

fn is_of_host(c: char) -> bool {
    c.is_alphanumeric() || is_hidden(c) || ".-_．｡".contains(c)
}

fn is_mail(text: &str) -> bool {
    text.split_once('@').is_some_and(|(name, host)| {
        let is_name = !name.is_empty() && !name.contains(['/', ':', '(', ')']);
        is_name && host.starts_with(|c: char| c.is_alphanumeric() || is_hidden(c)) && host.chars().all(is_of_host)
    })
}

/// Whether a letter stands beside others without a space: those of Han, Kana and Thai, and Korean endings.
fn is_close(c: char) -> bool {
    is_single(c) || matches!(u32::from(c), 0xac00..=0xd7a3)
}

/// Bytes of the first characters that belong to an address; all its letters are of scripts with spaces, or of others.
fn length(chars: impl Iterator<Item = char>, belongs: fn(char) -> bool) -> usize {
    let mut first = None;
    let mut fits = |c: &char| !c.is_alphanumeric() || *first.get_or_insert(is_close(*c)) == is_close(*c);
    chars.take_while(|c| belongs(*c) && fits(c)).map(char::len_utf8).sum()
}

/// Where the mail addresses of a text stand, whatever stands around them.
pub(crate) fn mails(text: &str) -> Vec<(usize, usize)> {
    let is_of_name = |c: char| c.is_alphanumeric() || is_hidden(c) || "._%+-".contains(c);
    let place = |(at, mark): (usize, char)| {
        let (name, host) = (text.get(..at)?, text.get(at + mark.len_utf8()..)?);
        let name = name.get(at - length(name.chars().rev(), is_of_name)..)?.trim_start_matches('.');
        let host = host.get(..length(host.chars(), is_of_host))?.trim_end_matches(['.', '-', '_']);
        let end = at + mark.len_utf8() + host.len();
        (!name.is_empty() && !host.is_empty()).then_some((at - name.len(), end))
    };
    text.char_indices().filter(|(_, c)| matches!(c, '@' | '＠' | '﹫')).filter_map(place).collect()
}

/// Endings of names of files, which are no hosts.
const FILES: [&str; 24] = [
    "pdf", "txt", "csv", "tsv", "json", "md", "xml", "html", "htm", "yaml", "yml", "png", "jpg", "jpeg", "gif", "svg",
    "doc", "docx", "xls", "xlsx", "ppt", "pptx", "py", "js",
];

/// Whether a place in a text has the signs of the value that make an address of words: `@`, and the points of a host.
pub(crate) fn keeps_signs(value: &str, slice: &str) -> bool {
    let last = value.rsplit('.').next().map(folded).unwrap_or_default();
    let has_points = value.contains('.') && is_host(value) && !FILES.contains(&&*last);
    let signs = |text: &str| {
        let (mut signs, mut words, mut before) = (Vec::new(), 0, 0);
        tokens(text, |word, start, end| {
            let gap = text.get(before..start).unwrap_or_default();
            if words > 0 && gap.contains(['@', '＠', '﹫']) {
                signs.push((words, '@'));
            } else if words > 0 && has_points && gap.starts_with('.') {
                signs.push((words, '.'));
            }
            words += word.len();
            before = end;
        });
        signs
    };
    (!has_points && !value.contains(['@', '＠', '﹫'])) || signs(value) == signs(slice)
}

/// Whether other words in another order can't be meant by a value: it has the signs of an address.
pub(crate) fn has_signs(value: &str) -> bool {
    let may_have = value.contains(['@', '＠', '﹫', '.']);
    may_have && !keeps_signs(value, &Words::of(value).iter().collect::<Vec<_>>().join(" "))
}

/// Whether a text in compatibility forms begins with a prefix of ASCII letters.
fn starts_with(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// The part of a URL behind its scheme, or behind `//`.
fn behind_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("//")?;
    let is_scheme = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    (scheme.is_empty() || scheme.strip_suffix(':').is_some_and(is_scheme)).then_some(rest)
}

/// Without the parts that don't change where a URL leads, or whom a number calls.
fn stripped(url: &str) -> &str {
    let mut core = url;
    for prefix in ["https://", "http://", "//", "mailto:", "tel:", "www."] {
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
        && (text.starts_with('+') || text.parse::<f64>().is_err())
        && date::read(text).is_empty()
}

impl Address {
    /// What kind of address a whole value is.
    pub(crate) fn of(value: &str) -> Option<Self> {
        let value = compatible(value);
        if is_account(&value) {
            return Some(Self::Account);
        }
        if is_telephone(value.strip_prefix("tel:").unwrap_or(&value)) {
            return Some(Self::Telephone);
        }
        if value.contains(char::is_whitespace) {
            return None;
        }
        let is_named = value.contains("://") && value.starts_with(char::is_alphanumeric);
        let is_url = is_named || behind_scheme(&value).is_some_and(|rest| !rest.is_empty());
        if is_mail(stripped(&value)) && !is_url {
            return Some(Self::Mail);
        }
        if is_url || starts_with(&value, "www.") {
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

/// Whether a character continues a word. Letters of Han, Kana and the like stand beside words of others.
fn is_word(c: char) -> bool {
    (c.is_alphanumeric() && !is_close(c)) || c == '_' || is_hidden(c)
}

/// Whether the characters before and behind a place leave the address whole.
fn is_whole(kind: Address, before: &str, after: &str, may_go_on: bool) -> bool {
    let mut backwards = before.chars().rev();
    let (last, last_but_one) = (backwards.next(), backwards.next());
    let mut next = after.chars();
    let (first, second) = (next.next(), next.next());
    let goes_on = |marks: &str| first.is_some_and(|c| marks.contains(c)) && second.is_some_and(is_word);
    match kind {
        Address::Mail => {
            let is_name = |marks: &str| last.is_some_and(|c| marks.contains(c)) && last_but_one.is_some_and(is_word);
            !last.is_some_and(|c| is_word(c) || "@.+-%".contains(c))
                && !is_name("'!#$&*~^")
                && !first.is_some_and(|c| is_word(c) || "@-%".contains(c))
                && !goes_on(".．｡。")
        }
        Address::Url => {
            let is_www = before.len() >= 4 && before.get(before.len() - 4..).is_some_and(|www| folded(www) == "www.");
            let start = if is_www { before.get(..before.len() - 4).unwrap_or_default() } else { before };
            let last = start.chars().next_back();
            let is_start = start.ends_with("//") || !last.is_some_and(|c| is_word(c) || "@.+-/%".contains(c));
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
            // A letter of Han beside one of the address continues it.
            let is_joined = |own: Option<char>, other: Option<char>| {
                own.is_some_and(is_close) && other.is_some_and(char::is_alphanumeric)
            };
            let slice = text.get(span.0..span.1)?;
            let is_torn = is_joined(slice.chars().next(), before.chars().next_back())
                || is_joined(slice.chars().next_back(), after.chars().next());
            // "+415 …" is another country than "+1 415 …".
            let is_abroad = core.split(|c| digit(c).is_some()).next().is_some_and(|lead| lead.contains('+'));
            let has_plus = !is_abroad || before.trim_end_matches([' ', '(', '\u{a0}']).ends_with('+');
            let is_number = kind != Address::Telephone || has_plus;
            (is_same && is_number && !is_torn && is_whole(kind, before, after, may_go_on)).then_some(span)
        })
    }

    /// Where a telephone number stands with a zero that is dialled only inside of its country: `+49 (0)30 …`.
    fn with_trunk_zero(&mut self, scope: Scope, core: &str) -> Vec<Spot> {
        if let Some((country, rest)) = core.split_once("(0)") {
            return self.whole(scope, Address::Telephone, &format!("{country}{rest}"), false);
        }
        let digits: String = core.chars().filter(char::is_ascii_digit).collect();
        let mut spots = Vec::new();
        let longest = if core.starts_with('+') { 3 } else { 0 };
        for country in 1..=longest {
            let Some((country, rest)) = digits.split_at_checked(country) else { break };
            let found = self.whole(scope, Address::Telephone, &format!("+{country} 0 {rest}"), false);
            spots.extend(found.into_iter().filter(|spot| {
                self.text(*spot).get(spot.span.0..spot.span.1).is_some_and(|slice| slice.contains("(0)"))
            }));
        }
        spots
    }

    /// Where an address stands: whole, or a URL in parts. The flag says that some part is in untrusted texts alone.
    pub(crate) fn address(&mut self, scope: Scope, kind: Address, value: &str) -> Option<(Vec<Spot>, How, bool)> {
        let value = compatible(value);
        let core = if kind == Address::Account { &value } else { stripped(&value) };
        let mut spots = self.whole(scope, kind, core, false);
        if spots.is_empty() && kind == Address::Telephone {
            spots = self.with_trunk_zero(scope, core);
        }
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
        assert!(is_whole(Address::Mail, "联系", "或者", false) && !is_whole(Address::Mail, "o'", "", false));
        assert!(is_whole(Address::Mail, " '", "'", false));
    }

    #[test]
    fn mails_are_found_in_any_marks() {
        let of = |text: &str| -> Vec<String> {
            mails(text).into_iter().filter_map(|(start, end)| text.get(start..end).map(str::to_owned)).collect()
        };
        assert_eq!(of("to=a@b.example&c@d.example"), ["a@b.example", "c@d.example"]);
        assert_eq!(of("*a.b+c@d.example*."), ["a.b+c@d.example"]);
        assert_eq!(of("联系a@b.example, 李四@例子.公司"), ["a@b.example", "李四@例子.公司"]);
        assert!(of("@tool and 5 @ 3").is_empty());
    }

    #[test]
    fn signs_of_addresses_are_kept() {
        assert!(!keeps_signs("ada_home@example.com", "ada@home.example.com"));
        assert!(!keeps_signs("pays.at", "pays at") && keeps_signs("report.pdf", "report pdf"));
        assert!(keeps_signs("Wi-Fi", "wifi") && keeps_signs("bank.ru", "BANK.RU"));
        assert!(has_signs("a@b") && has_signs("pays.at") && !has_signs("the report"));
    }
}
