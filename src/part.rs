//! Parts: the images and files of messages and results. A log holds their names and sizes; the store keeps the bytes by
//! their hash.

use crate::hex::hex;
use imagesize::ImageType;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Characters of a name that are shown.
const NAME: usize = 80;

/// Characters of an ending, with its dot, that a shortened name keeps.
const ENDING: usize = 20;

/// An image or a file, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its name in the run: `U1`, `U2`, … for those of the user, that of its ticket for the others. Until it is placed,
    /// the mark that stands for it in a text.
    pub label: Arc<str>,
    /// `image/png` and the like.
    pub media_type: Arc<str>,
    /// The name of its file, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// How many bytes it has.
    pub bytes: u64,
    /// Pixels of an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Pixels of an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: Arc<str>,
}

/// The bytes of a part.
#[derive(Debug, Clone)]
pub struct Content {
    /// Their SHA-256, in hexadecimal digits.
    pub sha256: Arc<str>,
    /// The content of the file, byte for byte.
    pub data: Arc<[u8]>,
}

impl Content {
    /// Content with its hash.
    pub fn new(data: impl Into<Arc<[u8]>>) -> Self {
        let data = data.into();
        Self { sha256: hex(&Sha256::digest(&data)).into(), data }
    }
}

impl Part {
    /// A part with this label or mark.
    pub fn new(label: &str, media_type: &str, name: Option<&str>, content: &Content) -> Self {
        let size = imagesize::blob_size(&content.data).ok().filter(|_| media_type.starts_with("image/"));
        let pixels = |pixels: usize| u32::try_from(pixels).ok();
        Self {
            label: label.into(),
            media_type: media_type.into(),
            name: name.map(shown_name).filter(|name| !name.is_empty()).map(Arc::from),
            bytes: content.data.len() as u64,
            width: size.and_then(|size| pixels(size.width)),
            height: size.and_then(|size| pixels(size.height)),
            sha256: Arc::clone(&content.sha256),
        }
    }

    /// The line that tells it to a model: `[image 640x480, 24 KB, T3]`.
    pub fn line(&self) -> String {
        let kind = self.media_type.split('/').next().unwrap_or_default();
        let what = match (kind, self.width, self.height) {
            ("image", Some(width), Some(height)) => format!("image {width}x{height}"),
            ("image" | "audio" | "video", ..) => format!("{kind} {}", self.media_type),
            _ => format!("file {}", self.media_type),
        };
        let mut line = format!("[{what}, {}", size(self.bytes));
        let label = Some(&self.label).filter(|label| !label.is_empty() && !is_mark(label));
        for more in label.into_iter().chain(&self.name) {
            line.push_str(", ");
            line.push_str(more);
        }
        line.push(']');
        line
    }

    /// Whether it came from the user, and not with a result.
    pub fn is_of_user(&self) -> bool {
        self.label.starts_with('U')
    }

    fn labelled(&self, label: String) -> Self {
        Self { label: label.into(), ..self.clone() }
    }
}

/// The media type of a file by its first bytes, if it is an image that models read or a PDF, and else by its name.
pub fn media_type(data: &[u8], name: Option<&str>) -> Option<String> {
    let known = match imagesize::image_type(data) {
        Ok(ImageType::Png) => Some("image/png"),
        Ok(ImageType::Jpeg) => Some("image/jpeg"),
        Ok(ImageType::Gif) => Some("image/gif"),
        Ok(ImageType::Webp) => Some("image/webp"),
        _ => data.starts_with(b"%PDF-").then_some("application/pdf"),
    };
    let by_name = || mime_guess::from_path(name?).first().map(|guess| guess.essence_str().to_owned());
    known.map(str::to_owned).or_else(by_name)
}

/// A name that can stand in the line of a part. A longer one keeps its ending, which tells a script the kind of file.
fn shown_name(name: &str) -> String {
    let shown =
        name.chars().map(|c| if c.is_control() || matches!(c, '[' | ']' | '\u{2028}' | '\u{2029}') { '_' } else { c });
    let shown: Vec<char> = shown.collect();
    let ending = shown.iter().rposition(|c| *c == '.').and_then(|dot| shown.get(dot..)).unwrap_or_default();
    let ending = if shown.len() > NAME && ending.len() <= ENDING { ending } else { &[] };
    let stem = shown.len().min(NAME) - ending.len();
    shown.iter().take(stem).chain(ending).collect::<String>().trim().to_owned()
}

/// `812 bytes`, `24 KB`, `1.2 MB`.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..999_500 => format!("{} KB", (bytes + 500) / 1_000),
        _ => {
            let tenths = (bytes + 50_000) / 100_000;
            format!("{}.{} MB", tenths / 10, tenths % 10)
        }
    }
}

/// The form of the text in which parts are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm {
    /// The words of a user.
    Plain,
    /// JSON, in which a mark is inside of a string.
    Json,
}

/// Gives parts their labels, and puts their lines in the place of their marks. Parts that have labels keep them, as in
/// a log that is replayed.
pub fn place(text: &str, parts: &[Part], form: TextForm, label: impl Fn(usize) -> String) -> (String, Vec<Part>) {
    let mut text = text.to_owned();
    let mut placed = Vec::with_capacity(parts.len());
    for (position, part) in parts.iter().enumerate() {
        if !is_mark(&part.label) {
            placed.push(part.clone());
            continue;
        }
        let named = part.labelled(label(position));
        let line = named.line();
        let line = match form {
            TextForm::Plain => line,
            TextForm::Json => {
                let quoted = serde_json::Value::from(line).to_string();
                quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
            }
        };
        text = text.replace(&*part.label, &line);
        placed.push(named);
    }
    (text, placed)
}

/// Prefix of marks. Their rest is random, so that no other text has it.
pub const MARK: &str = "callslip-part-";

fn is_mark(label: &str) -> bool {
    label.starts_with(MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(media_type: &str, name: Option<&str>, bytes: usize) -> Part {
        Part::new("callslip-part-1", media_type, name, &Content::new(vec![0; bytes]))
    }

    #[test]
    fn a_line_says_what_it_is() {
        let mut image = part("image/png", None, 24_300);
        (image.width, image.height) = (Some(640), Some(480));
        let (text, placed) = place("see callslip-part-1.", &[image], TextForm::Plain, |_| "T3".to_owned());
        assert_eq!(text, "see [image 640x480, 24 KB, T3].");
        assert_eq!(&*placed[0].label, "T3");
        let line = |media_type, name, bytes| part(media_type, name, bytes).labelled("U1".to_owned()).line();
        assert_eq!(line("application/pdf", Some("a.pdf"), 1_234_567), "[file application/pdf, 1.2 MB, U1, a.pdf]");
        assert_eq!(line("audio/wav", None, 999), "[audio audio/wav, 999 bytes, U1]");
        assert_eq!(line("image/svg+xml", None, 999_500), "[image image/svg+xml, 1.0 MB, U1]");
    }

    #[test]
    fn a_name_can_not_end_the_line_or_the_json() {
        let named = part("text/csv", Some("a]\n\"b\\"), 1_000);
        let (text, _) = place("[\"callslip-part-1\"]", &[named], TextForm::Json, |_| "T1".to_owned());
        assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), ["[file text/csv, 1 KB, T1, a__\"b\\]"]);
    }

    #[test]
    fn a_long_name_keeps_its_ending() {
        let name = |name: &str| part("text/csv", Some(name), 1).name.unwrap().to_string();
        for (ending, kept) in [(".csv", ".csv"), (".tar.gz", ".gz"), ("", ""), (".", "."), (".ö日", ".ö日")] {
            let long = name(&format!("{}{ending}", "é".repeat(300)));
            assert_eq!(long, format!("{}{kept}", "é".repeat(NAME - kept.chars().count())), "{ending}");
        }
        assert_eq!(name(&format!("a.{}", "b".repeat(300))).chars().count(), NAME);
        assert_eq!(name(&format!("{}.csv", "a".repeat(76))).chars().count(), NAME);
    }

    #[test]
    fn what_is_placed_stays_as_it_is() {
        let (text, placed) = place("callslip-part-1", &[part("a/b", None, 1)], TextForm::Plain, |_| "U1".to_owned());
        let again = place(&text, &placed, TextForm::Plain, |_| "U9".to_owned());
        assert_eq!(again, (text, placed));
    }
}
