//! JSON pointers (RFC 6901): the places of values in JSON values.

/// A name as a step of a pointer has it.
pub(crate) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The name of a step.
pub(crate) fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}
