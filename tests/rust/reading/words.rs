//! The pieces of which hostile replies are made: the dictionary of the fuzzers.

/// Its words.
pub(crate) fn dictionary() -> Vec<String> {
    include_str!("../../../fuzz/words.dict").lines().filter_map(word).collect()
}

/// A line of the dictionary: a word in quotes, with `\\`, `\"` and `\xNN`.
fn word(line: &str) -> Option<String> {
    let inside = line.strip_prefix('"')?.strip_suffix('"')?;
    let (mut bytes, mut rest) = (Vec::new(), inside.as_bytes());
    while let [first, more @ ..] = rest {
        (rest, bytes) = match (first, more) {
            (b'\\', [b'x', digits @ ..]) => {
                let (digits, more) = digits.split_at(2);
                bytes.push(u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap());
                (more, bytes)
            }
            (b'\\', [other, more @ ..]) => {
                bytes.push(*other);
                (more, bytes)
            }
            _ => {
                bytes.push(*first);
                (more, bytes)
            }
        };
    }
    Some(String::from_utf8(bytes).unwrap())
}
