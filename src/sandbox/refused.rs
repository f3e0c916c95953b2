//! The message that the model gets instead of a result.

use serde::Serialize;
use thiserror::Error;

/// Why a script is not run. The model can do something about each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RefusedCode {
    /// The code can't be run by any Python.
    BadCode,
    /// What the script declares is not a list of packages.
    DependencyRejected,
    /// The packages could not be installed.
    DependencyInstallFailed,
}

impl RefusedCode {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BadCode => "bad_code",
            Self::DependencyRejected => "dependency_rejected",
            Self::DependencyInstallFailed => "dependency_install_failed",
        }
    }
}

/// A script that is not run, said so that the model knows what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Error)]
#[error("{message}")]
pub struct Refused {
    /// For programs.
    pub code: RefusedCode,
    /// For the model.
    pub message: String,
}

impl Refused {
    /// A script with this fault.
    pub fn new(code: RefusedCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(crate) fn code(message: impl Into<String>) -> Self {
        Self::new(RefusedCode::BadCode, message)
    }

    pub(crate) fn dependency(message: impl Into<String>) -> Self {
        Self::new(RefusedCode::DependencyRejected, message)
    }

    pub(crate) fn install(message: impl Into<String>) -> Self {
        Self::new(RefusedCode::DependencyInstallFailed, message)
    }
}
