//! What is kept of a stream: its beginning and its end.

use std::collections::VecDeque;

pub(super) struct Capture {
    /// Of the beginning, and as much again of the end.
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    count: u64,
    /// The bytes of a character that is not whole yet, of the piece that was published last.
    partial: Vec<u8>,
}

impl Capture {
    pub(super) fn new(kept: usize) -> Self {
        Self { half: kept / 2, head: Vec::new(), tail: VecDeque::new(), count: 0, partial: Vec::new() }
    }

    /// Takes a piece, and returns it as text.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.count += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = rest.get(rest.len().saturating_sub(self.half)..).unwrap_or_default();
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..over);
        self.partial.extend_from_slice(bytes);
        let whole = whole(&self.partial);
        let text = String::from_utf8_lossy(self.partial.get(..whole).unwrap_or_default()).into_owned();
        self.partial.drain(..whole);
        text
    }

    /// How much has come.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn is_truncated(&self) -> bool {
        self.count > (self.head.len() + self.tail.len()) as u64
    }

    pub(super) fn text(&self) -> String {
        let kept = self.head.len() + self.tail.len();
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if !self.is_truncated() {
            return String::from_utf8_lossy(&[self.head.as_slice(), &tail].concat()).into_owned();
        }
        let head = self.head.get(..whole(&self.head)).unwrap_or_default();
        // The end may begin within a character.
        let start = tail.iter().position(|byte| byte & 0xc0 != 0x80).unwrap_or(0);
        let left_out = self.count - kept as u64 + (self.head.len() - head.len() + start) as u64;
        let (head, tail) =
            (String::from_utf8_lossy(head), String::from_utf8_lossy(tail.get(start..).unwrap_or_default()));
        format!("{head}\n[{left_out} bytes left out]\n{tail}")
    }
}

/// How many of the bytes end with a whole character, or with what is none at all.
fn whole(bytes: &[u8]) -> usize {
    let Some(back) = bytes.iter().rev().take(3).position(|byte| byte & 0xc0 != 0x80) else { return bytes.len() };
    let start = bytes.len() - 1 - back;
    let needed = match bytes.get(start) {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => 1,
    };
    if back + 1 < needed { start } else { bytes.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_middle_of_much_is_left_out() {
        let mut capture = Capture::new(8);
        for piece in ["abc", "defgh", "ijklm"] {
            capture.push(piece.as_bytes());
        }
        assert_eq!(capture.text(), "abcd\n[5 bytes left out]\njklm");
        assert!(capture.is_truncated());
        assert_eq!(capture.count(), 13);
    }

    #[test]
    fn characters_are_not_cut() {
        let mut capture = Capture::new(8);
        capture.push("abcäöüöä".as_bytes());
        assert_eq!(capture.text(), "abc\n[6 bytes left out]\nöä");
    }

    proptest! {
        #[test]
        fn pieces_give_the_same_text_as_the_whole(text in "\\PC{0,40}", cuts in prop::collection::vec(0_usize..120, 0..6)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut capture = Capture::new(1 << 10);
            let told: String = cuts.windows(2).map(|pair| capture.push(&bytes[pair[0]..pair[1]])).collect();
            prop_assert_eq!(&told, &text);
            prop_assert_eq!(capture.text(), text);
        }

        #[test]
        fn bytes_that_are_no_text_are_told_too(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut capture = Capture::new(1 << 10);
            for byte in &bytes {
                capture.push(std::slice::from_ref(byte));
            }
            prop_assert_eq!(capture.text(), String::from_utf8_lossy(&bytes));
            prop_assert!(capture.partial.len() < 4);
        }
    }
}
