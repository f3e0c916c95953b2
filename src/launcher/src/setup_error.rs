//! The error of a sandbox that can't be built.

use std::borrow::Cow;
use std::fmt;
use std::io;

/// What was being done, and what the system said.
#[derive(Debug)]
pub(crate) struct SetupError {
    pub(crate) stage: Cow<'static, str>,
    pub(crate) cause: io::Error,
}

impl SetupError {
    pub(crate) fn new(stage: &'static str, words: impl Into<String>) -> Self {
        Self { stage: stage.into(), cause: io::Error::other(words.into()) }
    }

    /// Of the last system call.
    pub(crate) fn last(stage: &'static str) -> Self {
        Self { stage: stage.into(), cause: io::Error::last_os_error() }
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.stage, self.cause)
    }
}

/// Names what was being done.
pub(crate) trait At<T> {
    /// As a fault of this stage.
    fn at(self, stage: &'static str) -> Result<T, SetupError>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, stage: &'static str) -> Result<T, SetupError> {
        self.map_err(|cause| SetupError { stage: stage.into(), cause: cause.into() })
    }
}
