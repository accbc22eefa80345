//! Signatures of webhook calls: an HMAC over id, time and body, in the headers of the Standard
//! Webhooks specification.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use sha2::Sha256;

/// Id of the call; the same for all attempts.
pub(super) const ID: &str = "webhook-id";
/// Time of the call, in seconds since 1970.
pub(super) const TIMESTAMP: &str = "webhook-timestamp";
/// `v1,` and the signature in base64.
pub(super) const SIGNATURE: &str = "webhook-signature";
/// Number of the attempt, from 1.
pub(super) const ATTEMPT: &str = "webhook-attempt";

/// Prefix of a secret in base64.
const PREFIX: &str = "whsec_";

/// Minimum length of a decoded secret, in bytes.
const MIN_SECRET_LENGTH: usize = 24;

/// Key for signing calls.
#[derive(Debug, Clone)]
pub struct SigningKey(SecretSlice<u8>);

/// Reasons why a secret is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadSecret {
    /// The text after the prefix is not base64.
    #[error("the text after `whsec_` is not valid base64")]
    NoBase64,
    /// The secret is too short.
    #[error("the text after `whsec_` decodes to fewer than {MIN_SECRET_LENGTH} bytes")]
    Short,
}

impl SigningKey {
    /// Creates the key of a secret: `whsec_` and base64, as Standard Webhooks define it, or any
    /// other text.
    pub fn new(secret: &SecretString) -> Result<Self, BadSecret> {
        let secret = secret.expose_secret();
        let key = match secret.strip_prefix(PREFIX) {
            Some(rest) => STANDARD.decode(rest).map_err(|_| BadSecret::NoBase64)?,
            None => return Ok(Self(secret.as_bytes().to_vec().into())),
        };
        if key.len() < MIN_SECRET_LENGTH {
            Err(BadSecret::Short)
        } else {
            Ok(Self(key.into()))
        }
    }

    /// Returns the signature of a call.
    pub(super) fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let Ok(mac) = Hmac::<Sha256>::new_from_slice(self.0.expose_secret()) else {
            return String::new();
        };
        let signed = mac
            .chain_update(format!("{id}.{timestamp}."))
            .chain_update(body)
            .finalize()
            .into_bytes();
        format!("v1,{}", STANDARD.encode(signed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example of the Standard Webhooks specification.
    #[test]
    fn signature_of_a_known_call_matches() {
        let key = SigningKey::new(&"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into()).unwrap();
        let signature = key.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn signature_depends_on_every_part() {
        let key = |secret: &str| SigningKey::new(&secret.into()).unwrap();
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

    #[test]
    fn secret_with_base64_prefix_must_be_base64() {
        let bad = |secret: &str| SigningKey::new(&secret.into()).map(drop);
        assert_eq!(bad("whsec_not base64!"), Err(BadSecret::NoBase64));
        assert_eq!(
            bad("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS"),
            Err(BadSecret::NoBase64)
        );
        for short in [0, 1, 23] {
            assert_eq!(
                bad(&format!("whsec_{}", STANDARD.encode(vec![7; short]))),
                Err(BadSecret::Short),
                "{short}"
            );
        }
        assert_eq!(bad(&format!("whsec_{}", STANDARD.encode([7; 24]))), Ok(()));
    }
}
