//! How a receiver knows that a call is ours: an HMAC over its id, its time and its body, in the headers of standard webhooks.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretSlice, SecretString};
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

/// The fewest bytes that the base64 may stand for.
const SHORTEST: usize = 24;

/// The key that calls are signed with.
#[derive(Debug, Clone)]
pub struct SigningKey(SecretSlice<u8>);

/// Why a secret is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadSecret {
    /// It promises base64 and has something else.
    #[error("what follows `whsec_` is not valid base64")]
    NoBase64,
    /// It could be guessed.
    #[error("what follows `whsec_` stands for fewer than {SHORTEST} bytes")]
    Short,
}

impl SigningKey {
    /// The key of a secret: `whsec_` and base64, as standard webhooks have it, or any other text.
    pub fn new(secret: &SecretString) -> Result<Self, BadSecret> {
        let secret = secret.expose_secret();
        let key = match secret.strip_prefix(PREFIX) {
            Some(rest) => STANDARD.decode(rest).map_err(|_| BadSecret::NoBase64)?,
            None => return Ok(Self(secret.as_bytes().to_vec().into())),
        };
        if key.len() < SHORTEST {
            Err(BadSecret::Short)
        } else {
            Ok(Self(key.into()))
        }
    }

    /// The signature of a call.
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

    /// The example of the standard webhooks specification.
    #[test]
    fn a_known_call_has_its_known_signature() {
        let key = SigningKey::new(&"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into()).unwrap();
        let signature = key.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn every_part_counts() {
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
    fn a_secret_that_promises_base64_keeps_the_promise() {
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
