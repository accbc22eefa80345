//! Codes that a person sends to a bot, so that an identity is connected.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

/// Time for which a code is valid.
pub const CODE_VALIDITY: Duration = Duration::from_secs(600);

/// Code of 16 random bytes in base64url. Only its hash is stored.
#[derive(Debug, Clone)]
pub struct ConnectCode(SecretString);

impl ConnectCode {
    /// Creates a code.
    pub fn random() -> Self {
        Self(URL_SAFE_NO_PAD.encode(rand::random::<[u8; 16]>()).into())
    }

    /// Returns the text that the person sends.
    pub fn text(&self) -> &str {
        self.0.expose_secret()
    }

    /// Returns the stored hash.
    pub fn hash(&self) -> String {
        code_hash(self.text())
    }
}

/// Returns the SHA-256 of a code in hexadecimal digits.
pub fn code_hash(code: &str) -> String {
    hex::encode(Sha256::digest(code.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_base64url_of_16_bytes_and_hidden_in_debug() {
        let code = ConnectCode::random();
        assert_eq!(
            URL_SAFE_NO_PAD.decode(code.text()).map(|bytes| bytes.len()),
            Ok(16)
        );
        assert_ne!(code.text(), ConnectCode::random().text());
        assert!(!format!("{code:?}").contains(code.text()));
        assert_eq!(code.hash(), code_hash(code.text()));
        assert_eq!(
            code_hash("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
