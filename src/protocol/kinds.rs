//! Protocols by name: how each is made from options, and read from a log.

use super::{INTERNAL, PROTOCOLS, Protocol, ProtocolOptions};
use serde::de::DeserializeOwned;
use serde::{Deserialize as _, Serialize};
use serde_json::Value as Json;
use std::sync::{Arc, OnceLock};

/// A protocol that can be in the list of protocols.
pub trait NamedProtocol: Protocol + Serialize + DeserializeOwned + 'static {
    /// The name, in logs and for programs.
    const NAME: &'static str;

    /// The built-in prompt.
    const TEMPLATE: &'static str;

    /// The protocol with its own options from a JSON object, and the defaults of the options that all protocols have.
    ///
    /// # Errors
    /// An option is unknown or not valid.
    fn with_own_options(own: Json) -> serde_json::Result<Self>;
}

/// One entry of the list of protocols.
#[derive(Debug, Clone, Copy)]
pub struct ProtocolKind {
    /// The name, in logs and for programs.
    pub name: &'static str,
    /// The built-in prompt.
    pub template: &'static str,
    make: fn(Json, ProtocolOptions) -> serde_json::Result<Arc<dyn Protocol>>,
    read: fn(&Json) -> serde_json::Result<Arc<dyn Protocol>>,
}

/// What a test has registered.
static FURTHER: OnceLock<ProtocolKind> = OnceLock::new();

impl ProtocolKind {
    /// The entry of a protocol.
    pub const fn of<P: NamedProtocol>() -> Self {
        Self { name: P::NAME, template: P::TEMPLATE, make: make::<P>, read: read::<P> }
    }

    /// All protocols, in the order of the list.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        PROTOCOLS.iter().chain(FURTHER.get())
    }

    /// The protocol of this name, which the list may not have.
    pub fn find(name: &str) -> Option<&'static Self> {
        Self::all().chain(&INTERNAL).find(|kind| kind.name == name)
    }

    /// Adds a protocol to the list of this process: the tests have one more than the library. The first one stays.
    pub fn register(self) {
        FURTHER.get_or_init(|| self);
    }

    /// The names of all protocols, for errors: `'ticket', 'chatty' or 'react'`.
    pub fn names() -> String {
        let quoted: Vec<String> = Self::all().map(|kind| format!("'{}'", kind.name)).collect();
        match quoted.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            _ => quoted.concat(),
        }
    }

    /// A protocol with these options: its own as a JSON object, and those that all protocols have.
    ///
    /// # Errors
    /// One of its own options is unknown or not valid.
    pub fn make(&self, own: Json, options: ProtocolOptions) -> serde_json::Result<Arc<dyn Protocol>> {
        (self.make)(own, options)
    }

    /// The protocol whose options a log has.
    ///
    /// # Errors
    /// They are not options of this protocol.
    pub fn read(&self, stored: &Json) -> serde_json::Result<Arc<dyn Protocol>> {
        (self.read)(stored)
    }
}

fn make<P: NamedProtocol>(own: Json, options: ProtocolOptions) -> serde_json::Result<Arc<dyn Protocol>> {
    Ok(P::with_own_options(own)?.with_options(options))
}

fn read<P: NamedProtocol>(stored: &Json) -> serde_json::Result<Arc<dyn Protocol>> {
    Ok(P::deserialize(stored)?.with_options(ProtocolOptions::deserialize(stored)?))
}
