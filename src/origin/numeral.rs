//! Numbers in words.

use super::calendar::month_names;
use super::number::Decimal;
use super::token::Words;

const ONES: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// One to twenty, hundred and thousand in German, French, Spanish, Italian, Portuguese and Dutch, folded.
const OTHERS: [(u32, &str); 22] = [
    (1, "un|une|uno|una|ein|eine|eins|einen|einem|einer|um|uma|een"),
    (2, "deux|dos|zwei|due|dois|duas|twee"),
    (3, "trois|tres|drei|tre|drie"),
    (4, "quatre|cuatro|vier|quattro|quatro"),
    (5, "cinq|cinco|funf|cinque|vijf"),
    (6, "six|seis|sechs|sei|zes"),
    (7, "sept|siete|sieben|sette|sete|zeven"),
    (8, "huit|ocho|acht|otto|oito"),
    (9, "neuf|nueve|neun|nove|negen"),
    (10, "dix|diez|zehn|dieci|dez|tien"),
    (11, "onze|once|elf|undici"),
    (12, "douze|doce|zwolf|dodici|doze|twaalf"),
    (13, "treize|trece|dreizehn|tredici|treze|dertien"),
    (14, "quatorze|catorce|vierzehn|quattordici|veertien"),
    (15, "quinze|quince|funfzehn|quindici|vijftien"),
    (16, "seize|dieciseis|sechzehn|sedici|dezesseis|zestien"),
    (17, "diecisiete|siebzehn|diciassette|dezessete|zeventien"),
    (18, "dieciocho|achtzehn|diciotto|dezoito|achttien"),
    (19, "diecinueve|neunzehn|diciannove|dezenove|negentien"),
    (20, "vingt|veinte|zwanzig|venti|vinte|twintig"),
    (100, "cent|cien|hundert|einhundert|cento|cem|honderd"),
    (1000, "tausend|eintausend|mille|mil|duizend"),
];

/// The words of a number below a hundred.
fn tens(number: u32) -> Vec<&'static str> {
    let at = |list: &[&'static str], at: u32| list.get(at as usize).copied().unwrap_or_default();
    match number {
        0..20 => vec![at(&ONES, number)],
        _ if number.is_multiple_of(10) => vec![at(&TENS, number / 10)],
        _ => vec![at(&TENS, number / 10), at(&ONES, number % 10)],
    }
}

fn hundreds(number: u32, joint: &[&'static str]) -> Vec<&'static str> {
    if number < 100 {
        return tens(number);
    }
    let mut words = tens(number / 100);
    words.push("hundred");
    if !number.is_multiple_of(100) {
        words.extend(joint);
        words.extend(tens(number % 100));
    }
    words
}

fn english(number: u32, joint: &[&'static str]) -> Vec<&'static str> {
    let mut words = Vec::new();
    let mut rest = number;
    for (size, name) in [(1_000_000_000, "billion"), (1_000_000, "million"), (1000, "thousand")] {
        if rest >= size {
            words.extend(hundreds(rest / size, joint));
            words.push(name);
            rest %= size;
        }
    }
    if rest > 0 || words.is_empty() {
        if !words.is_empty() && rest < 100 {
            words.extend(joint);
        }
        words.extend(hundreds(rest, joint));
    }
    words
}

/// The rows of words in which a number may be written.
pub(crate) fn cardinals(number: u32) -> Vec<String> {
    let plain = english(number, &[]).join(" ");
    let mut ways = Vec::new();
    if number > 100 {
        ways.push(english(number, &["and"]).join(" "));
    }
    if (1100..10_000).contains(&number) && number.is_multiple_of(100) && !number.is_multiple_of(1000) {
        ways.push(format!("{} hundred", tens(number / 100).join(" ")));
    }
    if number < 100 && plain.contains(' ') {
        // "twentyfive"
        ways.push(plain.replace(' ', ""));
    }
    ways.extend(OTHERS.iter().filter(|(known, _)| *known == number).map(|(_, words)| (*words).to_owned()));
    ways.retain(|way| *way != plain);
    ways.insert(0, plain);
    ways
}

/// The number that English words say, such as "twenty five thousand".
pub(crate) fn spoken(words: &Words) -> Option<Decimal> {
    let (mut total, mut number) = (0u32, None::<u32>);
    for word in words.iter() {
        let position = |list: &[&str]| list.iter().position(|known| *known == word && !word.is_empty());
        let small = position(&ONES).or_else(|| position(&TENS).map(|tens| tens * 10));
        let size = match word {
            "hundred" => 100,
            "thousand" => 1000,
            "million" => 1_000_000,
            "and" if number.is_some() => continue,
            _ => {
                number = Some(number.unwrap_or(0).checked_add(u32::try_from(small?).ok()?)?);
                continue;
            }
        };
        let times = number?.checked_mul(size)?;
        number = Some(if size == 100 { times } else { 0 });
        total = total.checked_add(if size == 100 { 0 } else { times })?;
    }
    Some(Decimal::new(&total.checked_add(number?)?.to_string(), ""))
}

/// The names of the month with this number, as alternatives.
pub(crate) fn months(value: &Decimal) -> &'static str {
    value.small().map(month_names).unwrap_or_default()
}

/// Words that name an amount: "dozen", "half", "monthly".
pub(crate) fn amounts(value: &Decimal) -> &'static str {
    match (value.whole.as_str(), value.fraction.as_str()) {
        ("0", "5") => "half",
        ("0", "25") => "quarter",
        ("1", "") => "once|single|daily|hourly|annually",
        ("2", "") => "couple|pair|both|twice|double|semiannually",
        ("3", "") => "triple",
        ("4", "") => "quarterly",
        ("12", "") => "dozen|monthly",
        ("52", "") => "weekly",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_words() {
        let first = |number| cardinals(number)[0].clone();
        assert_eq!(first(0), "zero");
        assert_eq!(first(25), "twenty five");
        assert_eq!(first(405), "four hundred five");
        assert_eq!(first(2_300_012), "two million three hundred thousand twelve");
        assert_eq!(cardinals(405)[1], "four hundred and five");
        assert_eq!(cardinals(1500).last().unwrap(), "fifteen hundred");
        assert_eq!(spoken(&Words::of("two hundred and five thousand twenty-one")).unwrap().whole, "205021");
        assert!(spoken(&Words::of("twenty rooms")).is_none());
        assert!(cardinals(7)[1].split('|').any(|word| word == "sieben"));
        assert_eq!(cardinals(25)[1], "twentyfive");
    }
}
