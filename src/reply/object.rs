//! JSON objects: members in the order in which they were written, each key once.

use super::Value;
use compact_str::CompactString;
use std::collections::HashMap;

/// Up to this many members are searched one by one: quicker than hashing their keys.
const FEW: usize = 16;

/// An object, in the order of its keys.
///
/// Finding a key takes time with the number of members; see [`Members`] for building a large one.
#[derive(Debug, Clone)]
pub struct Object<V = Value> {
    members: Vec<(CompactString, V)>,
}

impl<V> Default for Object<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> Object<V> {
    /// An object without members.
    pub const fn new() -> Self {
        Self { members: Vec::new() }
    }

    /// How many members it has.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&V> {
        self.members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The value of a key, to change it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut V> {
        self.members.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Whether it has the key.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Sets the value of a key; a new one comes last.
    pub fn insert(&mut self, key: impl Into<CompactString>, value: V) {
        let key = key.into();
        match self.get_mut(&key) {
            Some(present) => *present = value,
            None => self.members.push((key, value)),
        }
    }

    /// The members, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &V)> {
        self.members.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The member at a position.
    pub fn at(&self, position: usize) -> Option<(&str, &V)> {
        self.members.get(position).map(|(key, value)| (key.as_str(), value))
    }

    /// The keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|(key, _)| key.as_str())
    }

    /// Whether both have the same keys in any order, with pairs of values for which `same` holds.
    pub fn matches(&self, other: &Self, same: impl Fn(&str, &V, &V) -> bool) -> bool {
        if self.len() != other.len() {
            return false;
        }
        if self.keys().eq(other.keys()) {
            return self.iter().zip(other.values()).all(|((key, one), another)| same(key, one, another));
        }
        let theirs: HashMap<&str, &V> = other.iter().collect();
        self.iter().all(|(key, one)| theirs.get(key).is_some_and(|another| same(key, one, another)))
    }

    /// The values, in order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.members.iter().map(|(_, value)| value)
    }
}

/// The order of keys does not count.
impl<V: PartialEq> PartialEq for Object<V> {
    fn eq(&self, other: &Self) -> bool {
        self.matches(other, |_, one, another| one == another)
    }
}

impl<V> IntoIterator for Object<V> {
    type Item = (CompactString, V);
    type IntoIter = std::vec::IntoIter<(CompactString, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.into_iter()
    }
}

/// Of equal keys the last one counts, at the place of the first.
impl<K: Into<CompactString>, V> FromIterator<(K, V)> for Object<V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Self {
        let mut object = Members::default();
        for (key, value) in members {
            let key = key.into();
            match object.get_mut(&key) {
                Some(present) => *present = value,
                None => object.push(key, value),
            }
        }
        object.into_object()
    }
}

/// An object that is being built: any number of members, each found in constant time.
#[derive(Debug, Clone)]
pub struct Members<V = Value> {
    object: Object<V>,
    /// The position of each key, once there are many.
    places: Option<HashMap<CompactString, usize>>,
}

impl<V> Default for Members<V> {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

/// The order of keys does not count.
impl<V: PartialEq> PartialEq for Members<V> {
    fn eq(&self, other: &Self) -> bool {
        self.object == other.object
    }
}

impl<V> Members<V> {
    /// With room for so many members.
    pub fn with_capacity(members: usize) -> Self {
        Self { object: Object { members: Vec::with_capacity(members) }, places: None }
    }

    /// The members so far.
    pub fn object(&self) -> &Object<V> {
        &self.object
    }

    /// All members of the object.
    pub fn into_object(mut self) -> Object<V> {
        self.object.members.shrink_to_fit();
        self.object
    }

    /// The members, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &V)> {
        self.object.iter()
    }

    /// The keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.object.keys()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&V> {
        match &self.places {
            None => self.object.get(key),
            Some(places) => self.object.at(*places.get(key)?).map(|(_, value)| value),
        }
    }

    /// Whether it has the key.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The value of a key, to change it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut V> {
        let Some(places) = &self.places else { return self.object.get_mut(key) };
        let place = *places.get(key)?;
        self.object.members.get_mut(place).map(|(_, value)| value)
    }

    /// Adds a member with a new key.
    pub fn push(&mut self, key: CompactString, value: V) {
        let place = self.object.len();
        if let Some(places) = &mut self.places {
            places.insert(key.clone(), place);
        }
        self.object.members.push((key, value));
        if place == FEW {
            let keys = self.object.members.iter().map(|(key, _)| key.clone());
            self.places = Some(keys.zip(0..).collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Members, Object, Value};

    fn numbered(keys: impl Iterator<Item = usize>) -> Object {
        keys.map(|key| (format!("k{key}"), Value::Bool(key.is_multiple_of(2)))).collect()
    }

    #[test]
    fn a_member_is_found_among_few_and_many() {
        for count in [0, 1, 15, 16, 17, 18, 500] {
            let mut members = Members::default();
            for key in 0..count {
                assert!(members.get_mut(&format!("k{key}")).is_none());
                members.push(format!("k{key}").into(), Value::Null);
                assert!((0..=key).all(|key| members.get_mut(&format!("k{key}")).is_some()));
            }
            assert_eq!(members.into_object().len(), count);
        }
    }

    #[test]
    fn order_does_not_count_in_comparison_but_is_kept() {
        let (up, down) = (numbered(0..40), numbered((0..40).rev()));
        assert_eq!(up, down);
        assert_eq!(down.keys().next(), Some("k39"));
        assert_ne!(up, numbered(1..41));
    }

    #[test]
    fn the_last_of_equal_keys_counts_at_the_place_of_the_first() {
        let members = [("a", Value::Null), ("b", Value::Null), ("a", Value::Bool(true))];
        let object: Object = members.into_iter().collect();
        assert_eq!(object.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(object.get("a"), Some(&Value::Bool(true)));
    }
}
