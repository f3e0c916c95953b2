//! Origins in the log: an object with the JSON pointers of the arguments as keys.

use super::from::Origin;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serializer};
use std::collections::BTreeMap;

/// Writes them in their order.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(origins: &impl AsRef<[(String, Origin)]>, serializer: S) -> Result<S::Ok, S::Error> {
    let origins = origins.as_ref();
    let mut map = serializer.serialize_map(Some(origins.len()))?;
    for (pointer, origin) in origins {
        map.serialize_entry(pointer, origin)?;
    }
    map.end()
}

/// Reads them, in the order of their pointers.
///
/// # Errors
/// It is not an object of origins.
pub fn deserialize<'de, D: Deserializer<'de>, T: From<Vec<(String, Origin)>>>(deserializer: D) -> Result<T, D::Error> {
    let map = BTreeMap::<String, Origin>::deserialize(deserializer)?;
    Ok(map.into_iter().collect::<Vec<_>>().into())
}
