//! Token of a session.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use deerflow_domain::accounts::TokenHash;
use secrecy::{ExposeSecret, SecretString};

/// Random token of 256 bits in base64url, which only the client holds.
#[derive(Debug, Clone)]
pub struct SessionToken(SecretString);

impl SessionToken {
    /// Generates a token from the operating system's random source.
    pub fn generate() -> Self {
        Self(URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()).into())
    }

    /// Returns the token as text.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Returns the hash to store.
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(self.expose())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_has_256_bits_and_is_hidden_in_debug() {
        let token = SessionToken::generate();
        assert_eq!(token.expose().len(), 43);
        assert_ne!(token.expose(), SessionToken::generate().expose());
        assert!(!format!("{token:?}").contains(token.expose()));
        assert_eq!(token.hash(), TokenHash::of(token.expose()));
    }
}
