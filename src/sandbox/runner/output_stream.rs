//! One of the streams that a script writes to, while it does.

use super::capture::Capture;
use std::io;
use tokio::net::unix::pipe::Receiver;

pub(super) struct OutputStream {
    pub(super) pipe: Receiver,
    pub(super) capture: Capture,
    /// Somebody could write still.
    pub(super) open: bool,
    bytes: Vec<u8>,
}

impl OutputStream {
    pub(super) fn new(pipe: Receiver, kept: usize) -> Self {
        // What a pipe holds.
        Self { pipe, capture: Capture::new(kept), open: true, bytes: vec![0; 1 << 16] }
    }

    /// The next piece, as text. May be given up and called again.
    pub(super) async fn next(&mut self) -> String {
        loop {
            match self.pipe.try_read(&mut self.bytes) {
                Ok(0) => break,
                Ok(count) => return self.capture.push(self.bytes.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.pipe.readable().await.is_err() {
                        break;
                    }
                }
                Err(_) => break,
            }
        }
        self.open = false;
        String::new()
    }

    /// What the pipe holds right now.
    pub(super) fn present(&mut self) -> String {
        match self.pipe.try_read(&mut self.bytes) {
            Ok(count) => self.capture.push(self.bytes.get(..count).unwrap_or_default()),
            Err(_) => String::new(),
        }
    }
}
