//! Internal callers: programs of the operator that share a secret with the server and act for any
//! user.

use axum::http::{HeaderMap, HeaderName};
use harness::runtime::actor_context::{ActorContext, DEFAULT_USER_ID};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

const TOKEN: HeaderName = HeaderName::from_static("x-deerflow-internal-token");
const OWNER: HeaderName = HeaderName::from_static("x-deerflow-owner-user-id");

/// Maximum length of a user id that a caller names, in characters.
const MAX_OWNER: usize = 64;
/// Length of the hash that distinguishes normalised ids, in hexadecimal characters.
const HASH_LENGTH: usize = 12;

/// Result of the check of the internal token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Internal {
    /// The request has no internal token.
    Absent,
    /// The token is right.
    Actor(ActorContext),
    /// The token is wrong, or the server has none.
    Wrong,
}

/// Checks the internal token of a request against the configured one.
pub(super) fn internal_actor(headers: &HeaderMap, configured: Option<&SecretString>) -> Internal {
    let Some(sent) = headers.get(TOKEN) else {
        return Internal::Absent;
    };
    // Hashes of random length-independent texts can be compared without a constant time.
    let is_right = configured.is_some_and(|configured| {
        Sha256::digest(sent.as_bytes()) == Sha256::digest(configured.expose_secret().as_bytes())
    });
    if !is_right {
        return Internal::Wrong;
    }
    let owner = headers.get(OWNER).and_then(|owner| owner.to_str().ok());
    let owner = owner.map(str::trim).filter(|owner| !owner.is_empty());
    Internal::Actor(ActorContext {
        auth_source: Some("internal".to_owned()),
        ..ActorContext::user(owner.map_or_else(|| DEFAULT_USER_ID.to_owned(), normalized))
    })
}

/// Returns an id of characters that paths permit. An id that changes gets a suffix, so that two
/// different ids stay different.
fn normalized(owner: &str) -> String {
    let permitted =
        |character: char| character.is_ascii_alphanumeric() || character == '_' || character == '-';
    if owner.chars().all(permitted) && owner.len() <= MAX_OWNER {
        return owner.to_owned();
    }
    let replaced: String = owner
        .chars()
        .take(MAX_OWNER - HASH_LENGTH - 1)
        .map(|character| if permitted(character) { character } else { '-' })
        .collect();
    let hash = hex::encode(Sha256::digest(owner.as_bytes()));
    format!("{replaced}-{}", &hash[..HASH_LENGTH])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(token: Option<&str>, owner: Option<&str>, configured: Option<&str>) -> Internal {
        let mut headers = HeaderMap::new();
        if let Some(token) = token {
            headers.insert(TOKEN, token.parse().unwrap());
        }
        if let Some(owner) = owner {
            headers.insert(OWNER, owner.parse().unwrap());
        }
        let configured = configured.map(SecretString::from);
        internal_actor(&headers, configured.as_ref())
    }

    fn user(owner: Option<&str>) -> String {
        match check(Some("s3cret"), owner, Some("s3cret")) {
            Internal::Actor(actor) => {
                assert_eq!(actor.auth_source.as_deref(), Some("internal"));
                assert_eq!(actor.scopes, Vec::<String>::new());
                actor.user_id
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_the_configured_token_is_right() {
        assert_eq!(check(None, Some("ann"), Some("s3cret")), Internal::Absent);
        assert_eq!(check(None, None, None), Internal::Absent);
        for (token, configured) in [
            ("x", Some("s3cret")),
            ("", Some("s3cret")),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(
                check(Some(token), None, configured),
                Internal::Wrong,
                "{token}"
            );
        }
        assert_eq!(user(None), "default");
        assert_eq!(user(Some(" ")), "default");
        assert_eq!(user(Some("ann_1-x")), "ann_1-x");
    }

    #[test]
    fn different_owners_stay_different_after_normalization() {
        let at = user(Some("ann@x.org"));
        assert!(at.starts_with("ann-x-org-"), "{at}");
        assert_ne!(at, user(Some("ann.x.org")));
        let up = user(Some("../../x"));
        assert!(!up.contains(['.', '/']), "{up}");
        let long = user(Some(&"a".repeat(500)));
        assert!(long.len() <= MAX_OWNER, "{long}");
    }
}
