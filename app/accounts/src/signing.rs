//! Signed texts: states of a sign-in through a provider, and CSRF tokens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use deerflow_domain::accounts::TokenHash;
use hmac::Mac as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use subtle::ConstantTimeEq as _;

use crate::secret::{SigningSecret, mac};

/// Error: a text was not signed here, was changed, or is too old. Does not reveal which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the text is not signed or has expired")]
pub struct InvalidSignature;

/// Lengths of the random part and of the signature of a CSRF token, in bytes: 64 bytes are the 86
/// characters that clients expect.
const CSRF_PART: usize = 32;

/// Signs texts with keys of one secret.
#[derive(Clone)]
pub struct Signer {
    states: [u8; 32],
    csrf: [u8; 32],
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signer(..)")
    }
}

impl Signer {
    /// Derives the keys.
    pub fn new(secret: &SigningSecret) -> Self {
        Self {
            states: secret.key("signed state"),
            csrf: secret.key("csrf token"),
        }
    }

    /// Signs a value for a purpose, with the time. The content is readable by the client. The result
    /// has only URL-safe characters.
    pub fn sign<T: Serialize>(
        &self,
        purpose: &str,
        value: &T,
        at: DateTime<Utc>,
    ) -> Result<String, serde_json::Error> {
        let content = serde_json::to_vec(&(at.timestamp(), value))?;
        let content = URL_SAFE_NO_PAD.encode(content);
        let signature = URL_SAFE_NO_PAD.encode(self.state_mac(purpose, &content));
        Ok(format!("{content}.{signature}"))
    }

    /// Returns a value that was signed for the purpose at most `max_age` before `at`.
    pub fn verify<T: DeserializeOwned>(
        &self,
        purpose: &str,
        text: &str,
        max_age: TimeDelta,
        at: DateTime<Utc>,
    ) -> Result<T, InvalidSignature> {
        let (content, signature) = text.split_once('.').ok_or(InvalidSignature)?;
        let signature = URL_SAFE_NO_PAD
            .decode(signature)
            .map_err(|_| InvalidSignature)?;
        if !bool::from(
            self.state_mac(purpose, content)
                .as_slice()
                .ct_eq(&signature),
        ) {
            return Err(InvalidSignature);
        }
        let content = URL_SAFE_NO_PAD
            .decode(content)
            .map_err(|_| InvalidSignature)?;
        let (signed, value): (i64, T) =
            serde_json::from_slice(&content).map_err(|_| InvalidSignature)?;
        let age = TimeDelta::seconds(at.timestamp().saturating_sub(signed));
        (age <= max_age).then_some(value).ok_or(InvalidSignature)
    }

    /// Creates a CSRF token of a session: 86 characters `[A-Za-z0-9_-]`.
    pub fn csrf_token(&self, session: &TokenHash) -> String {
        let nonce: [u8; CSRF_PART] = rand::random();
        let mut token = nonce.to_vec();
        token.extend_from_slice(&self.csrf_mac(&nonce, session));
        URL_SAFE_NO_PAD.encode(token)
    }

    /// Reports whether a CSRF token was created for this session.
    pub fn is_csrf_token_of(&self, token: &str, session: &TokenHash) -> bool {
        let Ok(bytes) = URL_SAFE_NO_PAD.decode(token) else {
            return false;
        };
        let Some((nonce, signature)) = bytes.split_at_checked(CSRF_PART) else {
            return false;
        };
        self.csrf_mac(nonce, session)
            .as_slice()
            .ct_eq(signature)
            .into()
    }

    fn state_mac(&self, purpose: &str, content: &str) -> [u8; 32] {
        let mut mac = mac(&self.states);
        // The length separates the parts.
        mac.update(&(purpose.len() as u64).to_be_bytes());
        mac.update(purpose.as_bytes());
        mac.update(content.as_bytes());
        mac.finalize().into_bytes().into()
    }

    fn csrf_mac(&self, nonce: &[u8], session: &TokenHash) -> [u8; 32] {
        let mut mac = mac(&self.csrf);
        mac.update(nonce);
        mac.update(session.as_str().as_bytes());
        mac.finalize().into_bytes().into()
    }
}

#[cfg(test)]
mod tests {
    use harness::testkit::at;

    use super::*;

    fn signer(secret: &str) -> Signer {
        let home = std::path::Path::new("/nonexistent");
        Signer::new(&SigningSecret::load(Some(secret), home).unwrap())
    }

    #[test]
    fn signed_value_is_returned_until_it_is_too_old() {
        let signer = signer("s");
        let text = signer.sign("state", &("ü", 7), at(0)).unwrap();
        let max_age = TimeDelta::seconds(300);
        let verify =
            |purpose, text: &str, at| signer.verify::<(String, i64)>(purpose, text, max_age, at);
        assert_eq!(verify("state", &text, at(0)), Ok(("ü".to_owned(), 7)));
        assert!(verify("state", &text, at(0) + max_age).is_ok());
        let late = at(0) + max_age + TimeDelta::seconds(1);
        assert_eq!(verify("state", &text, late), Err(InvalidSignature));
        assert_eq!(verify("other", &text, at(0)), Err(InvalidSignature));
    }

    #[test]
    fn changed_text_or_other_secret_is_refused() {
        let text = signer("s").sign("state", &7, at(0)).unwrap();
        let verify = |signer: Signer, text: &str| {
            signer.verify::<i64>("state", text, TimeDelta::seconds(9), at(0))
        };
        assert_eq!(verify(signer("s"), &text), Ok(7));
        assert_eq!(verify(signer("t"), &text), Err(InvalidSignature));
        let other = signer("s").sign("state", &8, at(0)).unwrap();
        let (content, _) = other.split_once('.').unwrap();
        let (_, signature) = text.split_once('.').unwrap();
        let mixed = format!("{content}.{signature}");
        for wrong in [
            "",
            ".",
            &mixed,
            &text[1..],
            &text[..text.len() - 1],
            "a.b.c",
        ] {
            assert_eq!(verify(signer("s"), wrong), Err(InvalidSignature), "{wrong}");
        }
    }

    #[test]
    fn csrf_token_belongs_to_its_session() {
        let signer = signer("s");
        let (one, other) = (TokenHash::of("one"), TokenHash::of("other"));
        let token = signer.csrf_token(&one);
        assert_eq!(token.len(), 86);
        assert!(
            token
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        );
        assert!(signer.is_csrf_token_of(&token, &one));
        assert!(!signer.is_csrf_token_of(&token, &other));
        assert_ne!(signer.csrf_token(&one), token);
        for wrong in ["", "!", &token[..85], &token[..40], &format!("{token}AA")] {
            assert!(!signer.is_csrf_token_of(wrong, &one), "{wrong}");
        }
    }
}
