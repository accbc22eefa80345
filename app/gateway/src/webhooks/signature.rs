//! How a receiver knows that a call is ours: an HMAC over its id, its time and its body, in the headers of standard webhooks.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

/// The call's id; the same at every try.
pub(super) const ID: &str = "webhook-id";
/// The seconds since 1970 when the call was made.
pub(super) const TIMESTAMP: &str = "webhook-timestamp";
/// `v1,` and the signature in base64.
pub(super) const SIGNATURE: &str = "webhook-signature";
/// Which try it is, from 1.
pub(super) const ATTEMPT: &str = "webhook-attempt";

/// What the secret begins with whose rest is base64.
const PREFIX: &str = "whsec_";

/// The key that calls are signed with.
#[derive(Debug, Clone)]
pub struct SigningKey(SecretString);

impl SigningKey {
    /// The key of a secret: `whsec_` and base64, as standard webhooks have it, or any other text.
    pub fn new(secret: SecretString) -> Self {
        Self(secret)
    }

    /// The signature of a call.
    pub(super) fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let secret = self.0.expose_secret();
        let decoded = secret.strip_prefix(PREFIX).and_then(|rest| STANDARD.decode(rest).ok());
        let key = decoded.unwrap_or_else(|| secret.as_bytes().to_vec());
        let Ok(mac) = Hmac::<Sha256>::new_from_slice(&key) else { return String::new() };
        let signed = mac.chain_update(format!("{id}.{timestamp}.")).chain_update(body).finalize().into_bytes();
        format!("v1,{}", STANDARD.encode(signed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the standard webhooks specification.
    #[test]
    fn a_known_call_has_its_known_signature() {
        let key = SigningKey::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into());
        let signature = key.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn every_part_counts() {
        let key = |secret: &str| SigningKey::new(secret.into());
        let one = key("secret").sign("a", 1, b"x");
        for other in [
            key("other").sign("a", 1, b"x"),
            key("secret").sign("b", 1, b"x"),
            key("secret").sign("a", 2, b"x"),
            key("secret").sign("a", 1, b"y"),
        ] {
            assert_ne!(one, other);
        }
    }
}
