//! Sign-in that waits for its provider.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use harness::config::OidcProviderConfig;
use openidconnect::PkceCodeVerifier;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use crate::signing::{InvalidSignature, Signer};

/// Time within which a person has to come back from the provider.
pub const STATE_AGE: TimeDelta = TimeDelta::seconds(300);
/// Path after a sign-in without a valid one.
pub const DEFAULT_NEXT: &str = "/workspace";
/// Maximum length of a path, in bytes: a cookie has at most 4,096.
const MAX_NEXT: usize = 1_000;

/// Destination of a browser after the provider has signed the person in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// Address to which the provider sends the browser back.
    pub redirect_uri: String,
    /// Path of this host that the person wanted; see [`local_path`].
    pub next: String,
    /// `true` if the person wants to stay signed in when the browser closes.
    pub persistent: bool,
}

/// Sign-in that waits for its provider. The browser holds it in a signed cookie.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingSignIn {
    /// Random text that the provider returns.
    pub(super) state: String,
    /// Random text that the ID token has to repeat.
    pub(super) nonce: Option<String>,
    /// PKCE verifier.
    verifier: Option<String>,
    /// Address to which the provider sends the browser back.
    pub(super) redirect_uri: String,
    /// Path after the sign-in.
    next: String,
    persistent: bool,
}

impl std::fmt::Debug for PendingSignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingSignIn")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl PendingSignIn {
    /// Creates a sign-in with fresh random texts.
    pub(crate) fn new(destination: Destination, config: &OidcProviderConfig) -> Self {
        Self {
            state: URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()),
            nonce: config
                .nonce_enabled
                .then(|| URL_SAFE_NO_PAD.encode(rand::random::<[u8; 16]>())),
            verifier: config
                .pkce_enabled
                .then(|| URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())),
            redirect_uri: destination.redirect_uri,
            next: destination.next,
            persistent: destination.persistent,
        }
    }

    /// Signs the sign-in at the provider `name` for the cookie.
    pub fn seal(
        &self,
        signer: &Signer,
        name: &str,
        at: DateTime<Utc>,
    ) -> Result<String, serde_json::Error> {
        signer.sign(&purpose(name), self, at)
    }

    /// Returns the sign-in of a cookie, if it is one at the provider `name` that is not too old.
    pub fn open(
        signer: &Signer,
        name: &str,
        text: &str,
        at: DateTime<Utc>,
    ) -> Result<Self, InvalidSignature> {
        signer.verify(&purpose(name), text, STATE_AGE, at)
    }

    /// Reports whether a provider returned the state of this sign-in.
    pub fn has_state(&self, state: &str) -> bool {
        self.state.as_bytes().ct_eq(state.as_bytes()).into()
    }

    /// Returns the state.
    pub fn state(&self) -> &str {
        &self.state
    }

    /// Returns the path after the sign-in.
    pub fn next(&self) -> &str {
        &self.next
    }

    /// Returns whether the person wants to stay signed in when the browser closes.
    pub fn is_persistent(&self) -> bool {
        self.persistent
    }

    /// Returns the PKCE verifier.
    pub(super) fn verifier(&self) -> Option<PkceCodeVerifier> {
        self.verifier.clone().map(PkceCodeVerifier::new)
    }
}

fn purpose(name: &str) -> String {
    format!("oidc {name}")
}

/// Returns `next` if it is a path of this host in the plainest form, else [`DEFAULT_NEXT`].
/// Browsers read `//host`, `/\host` and `/<tab>/host` as another host.
pub fn local_path(next: &str) -> &str {
    let path = next.split(['?', '#']).next().unwrap_or_default();
    let has_dots = path.split('/').any(|part| {
        let part = part.replace("%2e", ".").replace("%2E", ".");
        part == "." || part == ".."
    });
    let is_plain = |character: char| {
        !character.is_control()
            && !character.is_whitespace()
            && character != '\\'
            && character != ':'
    };
    if next.len() <= MAX_NEXT
        && path.starts_with('/')
        && !path.contains("//")
        && !has_dots
        && next.chars().all(is_plain)
    {
        next
    } else {
        DEFAULT_NEXT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_this_host_is_returned() {
        for next in [
            "/",
            "/workspace",
            "/a/b?c=d&e=%2F%2Fx#f",
            "/ä",
            "/a..b/.c",
            "/a?x=//y",
        ] {
            assert_eq!(local_path(next), next);
        }
    }

    #[test]
    fn other_text_is_replaced() {
        for next in [
            "",
            "workspace",
            "//evil.test",
            "///evil.test",
            "/\\evil.test",
            "\\\\evil.test",
            "/\t/evil.test",
            "/\n/evil.test",
            " /workspace",
            "/ /evil.test",
            "https://evil.test",
            "javascript:alert(1)",
            "/javascript:alert(1)",
            "/a//evil.test",
            "/..//evil.test",
            "/../evil.test",
            "/%2e%2E//evil.test",
            "/./x",
            "/a\u{0}b",
            "/a\u{a0}b",
            "?next=/a",
            &format!("/{}", "a".repeat(1_000)),
        ] {
            assert_eq!(local_path(next), DEFAULT_NEXT, "{next:?}");
        }
    }
}
