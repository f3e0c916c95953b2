//! Bytes as hexadecimal digits.

use std::fmt::Write as _;

/// Two digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        // Writing into a string has no failing case.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}
