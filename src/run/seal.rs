//! Seals of calls: a decision counts for exactly the call that was shown.

use super::machine::RunMachine;
use crate::hex::hex;
use crate::ticket::{Ticket, TicketId};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Bytes of a block of SHA-256, which a key is padded to.
const BLOCK: usize = 64;

impl RunMachine {
    /// Gives a run that has not begun the key of its seals: hexadecimal digits of random bytes.
    #[must_use]
    pub fn sealed(mut self, key: Option<&str>) -> Self {
        self.start.seal_key = key.map(Arc::from);
        self
    }

    /// The seal of a call as it is now, in hexadecimal digits; `None` without such a ticket.
    pub fn seal(&self, ticket: TicketId) -> Option<String> {
        self.state.calls.tickets.get(ticket).map(|ticket| self.seal_of(ticket))
    }

    fn seal_of(&self, ticket: &Ticket) -> String {
        let key = self.start.seal_key.as_deref().unwrap_or_default();
        let arguments = ticket.arguments.as_ref().map_or_else(|| "null".to_owned(), |arguments| arguments.to_json());
        // JSON, so that no text of one part is taken for the next.
        let head = serde_json::json!([self.run_id(), ticket.id.to_string(), &*ticket.tool]);
        hex(&hmac(key.as_bytes(), format!("{head}{arguments}").as_bytes()))
    }
}

/// HMAC-SHA-256, RFC 2104.
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0_u8; BLOCK];
    let short: Vec<u8> = if key.len() > BLOCK { Sha256::digest(key).to_vec() } else { key.to_vec() };
    block.iter_mut().zip(&short).for_each(|(byte, own)| *byte = *own);
    let padded = |mark: u8| block.map(|byte| byte ^ mark);
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_hmac_of_rfc_4231() {
        let of = |key: &[u8], message: &[u8]| hex(&hmac(key, message));
        assert_eq!(
            of(b"Jefe", b"what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            of(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }
}
