//! Names and codes that mean the same: countries, states, cities, languages, currencies, units.

use super::from::How;
use super::look::{Look, Scope, Spot};
use super::token::Words;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Rows of equal meaning. Codes in capitals of up to 3 letters are found in a text in capitals only: "in" is no India.
const ROWS: &str = "\
US|USA|United States|United States of America|America|American|U.S.
UK|GB|GBR|United Kingdom|Great Britain|Britain|British|England|English
EU|European Union
DE|DEU|GER|Germany|German|Deutschland|Allemagne|Alemania|Germania|Duitsland
FR|FRA|France|French|Frankreich|Francia
ES|ESP|Spain|Spanish|Spanien|Espagne|Espana|Spagna|Spanje
IT|ITA|Italy|Italian|Italien|Italie|Italia
PT|PRT|Portugal|Portuguese
NL|NLD|Netherlands|Dutch|Holland|Niederlande|Nederland
BE|BEL|Belgium|Belgian
CH|CHE|Switzerland|Swiss|Schweiz|Suisse
AT|AUT|Austria|Austrian|Osterreich
SE|SWE|Sweden|Swedish
NO|NOR|Norway|Norwegian
DK|DNK|Denmark|Danish
FI|FIN|Finland|Finnish
PL|POL|Poland|Polish
CZ|CZE|Czech Republic|Czechia|Czech
GR|GRC|Greece|Greek
IE|IRL|Ireland|Irish
TR|TUR|Turkey|Turkish
RU|RUS|Russia|Russian
UA|UKR|Ukraine|Ukrainian
CN|CHN|ZH|China|Chinese|中国
JP|JPN|JA|Japan|Japanese|日本
KR|KOR|KO|South Korea|Korea|Korean
IN|IND|India|Indian
ID|IDN|Indonesia|Indonesian
TH|THA|Thailand|Thai
VN|VNM|Vietnam|Vietnamese
PH|PHL|Philippines
SG|SGP|Singapore
MY|MYS|Malaysia
HK|HKG|Hong Kong
TW|TWN|Taiwan
CA|CAN|Canada|Canadian
MX|MEX|Mexico|Mexican
BR|BRA|Brazil|Brazilian|Brasil
AR|ARG|Argentina
CL|CHL|Chile
CO|COL|Colombia
AU|AUS|Australia|Australian
NZ|NZL|New Zealand
ZA|ZAF|South Africa
EG|EGY|Egypt
SA|SAU|Saudi Arabia
AE|ARE|UAE|United Arab Emirates
IL|ISR|Israel
HE|Hebrew
AR|Arabic
HI|Hindi
EN|English
USD|US dollar|US dollars|dollar|dollars|bucks|$
EUR|euro|euros|€
GBP|pound|pounds|pound sterling|British pounds|British pound|£
JPY|yen|Japanese yen|¥
CNY|RMB|yuan|Chinese yuan|renminbi
INR|rupee|rupees|Indian rupee|Indian rupees|₹
KRW|won|Korean won|₩
CAD|Canadian dollar|Canadian dollars
AUD|Australian dollar|Australian dollars
CHF|Swiss franc|Swiss francs|franken
RUB|ruble|rubles|roubles
BRL|real|reais|Brazilian real
MXN|peso|pesos|Mexican peso|Mexican pesos
BTC|bitcoin
ETH|ethereum
AL|Alabama
AK|Alaska
AZ|Arizona
AR|Arkansas
CA|California
CO|Colorado
CT|Connecticut
DE|Delaware
FL|Florida
GA|Georgia
HI|Hawaii
ID|Idaho
IL|Illinois
IN|Indiana
IA|Iowa
KS|Kansas
KY|Kentucky
LA|Louisiana
ME|Maine
MD|Maryland
MA|Massachusetts
MI|Michigan
MN|Minnesota
MS|Mississippi
MO|Missouri
MT|Montana
NE|Nebraska
NV|Nevada
NH|New Hampshire
NJ|New Jersey
NM|New Mexico
NY|New York
NC|North Carolina
ND|North Dakota
OH|Ohio
OK|Oklahoma
OR|Oregon
PA|Pennsylvania
RI|Rhode Island
SC|South Carolina
SD|South Dakota
TN|Tennessee
TX|Texas
UT|Utah
VT|Vermont
VA|Virginia
WA|Washington
WV|West Virginia
WI|Wisconsin
WY|Wyoming
DC|District of Columbia|Washington DC
NYC|New York|New York City
LA|Los Angeles
SF|San Francisco|San Fran
celsius|C|°C|centigrade|metric|℃
fahrenheit|F|°F|imperial|℉
kelvin|K
male|M|man|men|boy|he
female|F|woman|women|girl|she
km|kilometers|kilometres|kilometer|kilometre|kilometro|kilometros
m|meters|metres|meter|metre|metros
cm|centimeters|centimetres|centimeter|centimetre
mm|millimeters|millimetres|millimeter|millimetre
mi|mile|miles
ft|foot|feet
in|inch|inches
yd|yard|yards
kg|kilogram|kilograms|kilo|kilos
g|gram|grams
mg|milligram|milligrams
lb|lbs|pound|pounds
oz|ounce|ounces
l|liter|liters|litre|litres
ml|milliliter|milliliters|millilitre|millilitres
mph|miles per hour|mi h
kmh|km h|kph|kilometers per hour|kilometres per hour
h|hr|hrs|hour|hours|hourly|stunden
min|mins|minute|minutes
s|sec|secs|second|seconds
d|day|days|daily|tage
week|weeks|weekly|wk
month|months|monthly|mo
year|years|yearly|annual|annually|yr
GB|gigabyte|gigabytes
MB|megabyte|megabytes
TB|terabyte|terabytes
kWh|kilowatt hour|kilowatt hours
asc|ascending|increasing
desc|descending|decreasing
mon|Monday
tue|Tuesday
wed|Wednesday
thu|Thursday
fri|Friday
sat|Saturday
sun|Sunday
UTC|GMT
EST|Eastern Time|Eastern
PST|Pacific Time|Pacific
%|percent|percentage|pct
py|Python
js|JavaScript
ts|TypeScript";

/// One way of writing a code or name.
struct Form {
    text: &'static str,
    words: Words,
}

static FORMS: LazyLock<Vec<Vec<Form>>> = LazyLock::new(|| {
    let form = |text| Form { text, words: Words::of(text) };
    ROWS.lines().map(|row| row.split('|').map(form).collect()).collect()
});

/// The numbers of the rows by the folded words of their forms.
static KNOWN: LazyLock<BTreeMap<&'static str, Vec<usize>>> = LazyLock::new(|| {
    let mut known: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (number, row) in FORMS.iter().enumerate() {
        for form in row {
            known.entry(form.key()).or_default().push(number);
        }
    }
    known
});

impl Form {
    /// Its folded words, or the sign that it is.
    fn key(&self) -> &str {
        if self.words.is_empty() { self.text } else { &self.words.whole }
    }
}

/// Whether a word is a form of some row.
pub(crate) fn is_known(word: &str) -> bool {
    KNOWN.contains_key(word)
}

/// Other forms of a value, by its folded words.
fn others(key: &str) -> impl Iterator<Item = &'static Form> {
    let numbers = KNOWN.get(key).into_iter().flatten();
    numbers.filter_map(|number| FORMS.get(*number)).flatten().filter(move |form| form.key() != key)
}

fn is_code(form: &str) -> bool {
    form.len() <= 3 && form.bytes().all(|byte| byte.is_ascii_uppercase())
}

impl Look<'_> {
    /// Where another form of a code or name stands, which is given by its folded words.
    pub(crate) fn code(&mut self, scope: Scope, key: &str) -> Option<(Vec<Spot>, How)> {
        let mut spots = Vec::new();
        for Form { text: form, words } in others(key) {
            if words.is_empty() {
                spots.extend(if scope == Scope::Conversation { self.symbol(form) } else { None });
                continue;
            }
            spots.extend(self.run(scope, words, &mut |text, span| {
                (!is_code(form) || text.get(span.0..span.1) == Some(form)).then_some(span)
            }));
        }
        (!spots.is_empty()).then_some((spots, How::Code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_names() {
        let has = |key: &str, text: &str| others(key).any(|form| form.text == text);
        assert!(has("fr", "France") && has("newyork", "NY") && has("usd", "$") && has("€", "EUR"));
        assert_eq!(others("wexcombe").count(), 0);
    }
}
