//! The text of a reply as it arrives in bytes: characters cut by a chunk's end are joined, broken ones replaced.

/// Text that only grows.
#[derive(Debug, Default)]
pub struct Buffer {
    text: String,
    /// The first bytes of a character that is still incomplete.
    partial: Vec<u8>,
}

impl Buffer {
    /// The text so far, up to the last whole character.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Takes the next bytes.
    pub fn push(&mut self, chunk: &[u8]) {
        if self.partial.is_empty() {
            self.append(chunk);
        } else {
            let mut joined = std::mem::take(&mut self.partial);
            joined.extend_from_slice(chunk);
            self.append(&joined);
        }
    }

    /// Closes the text and gives it; a character that never ended becomes U+FFFD.
    pub fn close(&mut self) {
        if !self.partial.is_empty() {
            self.partial.clear();
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
    }

    /// All text so far.
    pub fn into_text(self) -> String {
        self.text
    }

    fn append(&mut self, mut bytes: &[u8]) {
        loop {
            match std::str::from_utf8(bytes) {
                Ok(text) => return self.text.push_str(text),
                Err(error) => {
                    let (valid, rest) = bytes.split_at(error.valid_up_to());
                    self.text.push_str(&String::from_utf8_lossy(valid));
                    let Some(length) = error.error_len() else {
                        self.partial.extend_from_slice(rest);
                        return;
                    };
                    self.text.push(char::REPLACEMENT_CHARACTER);
                    bytes = rest.get(length..).unwrap_or_default();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Buffer;

    fn read(chunks: &[&[u8]]) -> String {
        let mut buffer = Buffer::default();
        for chunk in chunks {
            buffer.push(chunk);
        }
        buffer.close();
        buffer.into_text()
    }

    #[test]
    fn joins_a_character_cut_anywhere() {
        let text = "a€😀é".as_bytes();
        for cut in 0..text.len() {
            let (left, right) = text.split_at(cut);
            assert_eq!(read(&[left, right]), "a€😀é");
        }
    }

    #[test]
    fn replaces_broken_bytes_the_same_in_any_split() {
        let bytes = b"x\xff\xe2\x82y\xf0\x9f";
        let whole = read(&[bytes]);
        assert_eq!(whole, String::from_utf8_lossy(bytes));
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single), whole);
    }
}
