//! Protocols in logs: an object with the name as its only key, and the options that a run depends on once its prompt is
//! rendered.

use super::{Protocol, ProtocolKind};
use serde::de::Error as _;
use serde::ser::{Error as _, SerializeMap};
use serde::{Deserialize, Deserializer, Serializer};
use serde_json::{Map, Value as Json};
use std::sync::Arc;

/// The options as a log has them: one object with those of the protocol and those that all protocols have.
///
/// # Errors
/// An option can't be written as JSON.
pub fn options(protocol: &dyn Protocol) -> serde_json::Result<Map<String, Json>> {
    let mut all = Map::new();
    for part in [protocol.own_options()?, serde_json::to_value(protocol.options())?] {
        if let Json::Object(part) = part {
            all.extend(part);
        }
    }
    Ok(all)
}

/// The stored form as JSON.
///
/// # Errors
/// An option can't be written as JSON.
pub fn to_json(protocol: &dyn Protocol) -> serde_json::Result<Json> {
    Ok(Map::from_iter([(protocol.name().to_owned(), options(protocol)?.into())]).into())
}

/// For serde's `with`.
pub(crate) fn serialize<S: Serializer>(protocol: &Arc<dyn Protocol>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(protocol.name(), &options(&**protocol).map_err(S::Error::custom)?)?;
    map.end()
}

/// For serde's `with`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<dyn Protocol>, D::Error> {
    let mut entries = Map::deserialize(deserializer)?.into_iter();
    let (Some((name, stored)), None) = (entries.next(), entries.next()) else {
        return Err(D::Error::custom("expected an object with the name of a protocol as its only key"));
    };
    let kind = ProtocolKind::find(&name)
        .ok_or_else(|| D::Error::custom(format!("expected the protocol {}: got '{name}'", ProtocolKind::names())))?;
    kind.read(&stored).map_err(D::Error::custom)
}
