//! The channel on which a script asks for input.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use serde::Deserialize;
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// A prompt that is longer is no prompt.
const LONGEST: usize = 1 << 16;

pub(super) struct Prompts {
    stream: UnixStream,
    received: Vec<u8>,
    /// For the script. Given away when its launcher has it.
    pub(super) theirs: Option<OwnedFd>,
}

/// What a script asks.
#[derive(Deserialize)]
pub(super) struct Prompt {
    pub(super) prompt: String,
    pub(super) secret: bool,
}

impl Prompts {
    pub(super) fn new() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let ours = std::os::unix::net::UnixStream::from(ours);
        ours.set_nonblocking(true)?;
        Ok(Self { stream: UnixStream::from_std(ours)?, received: Vec::new(), theirs: Some(theirs) })
    }

    /// The next prompt, or `None` once there will be no more. May be given up and called again.
    pub(super) async fn next(&mut self) -> Option<Prompt> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.received) {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                // What is no prompt was written by the script itself: it is not answered.
                match serde_json::from_slice::<Prompt>(&line) {
                    // Whoever shows it cleans it.
                    Ok(prompt) => return Some(prompt),
                    Err(_) => continue,
                }
            }
            if self.received.len() > LONGEST {
                return None;
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes).await {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.received.extend(bytes.get(..count).unwrap_or_default()),
            }
        }
    }

    /// Answers the prompt; `None` is the end of the input.
    pub(super) async fn answer(&mut self, text: Option<String>) {
        let line = serde_json::json!({ "text": text }).to_string() + "\n";
        // A script that doesn't read its answers, or is gone, gets none.
        let write = self.stream.write_all(line.as_bytes());
        let _ = tokio::time::timeout(std::time::Duration::from_secs(1), write).await;
    }
}
