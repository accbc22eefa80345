//! Idempotency key of a request, and its stored form.

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue};
use chrono::TimeDelta;
use harness::runtime::actor_context::effective_user_id;
use harness::runtime::runs::store::RequestKey;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::error::ApiError;
use crate::state::GatewayState;

/// Request header with the idempotency key.
pub(crate) const IDEMPOTENCY_HEADER: &str = "idempotency-key";
/// Response header that marks a replayed response.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// Maximum length of a key.
pub(crate) const MAX_KEY_LENGTH: usize = 255;
/// Time for which a key is stored.
const KEY_TTL: TimeDelta = TimeDelta::hours(24);

/// Idempotency key of a request, if it has one, with the request's route and path.
#[derive(Debug)]
pub(crate) struct IdempotencyKey {
    key: Option<String>,
    route: String,
    path: String,
}

impl FromRequestParts<Arc<GatewayState>> for IdempotencyKey {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        _state: &Arc<GatewayState>,
    ) -> Result<Self, ApiError> {
        let mut names = parts.headers.get_all(IDEMPOTENCY_HEADER).iter();
        let key = names.next().map(parse_key).transpose()?;
        if names.next().is_some() {
            return Err(invalid_key("should be sent once"));
        }
        let route = parts
            .extensions
            .get::<MatchedPath>()
            .map(|route| route.as_str().to_owned());
        Ok(Self {
            key,
            route: route.unwrap_or_default(),
            path: parts.uri.path().to_owned(),
        })
    }
}

/// Parses a key of 1 to 255 visible ASCII characters.
fn parse_key(value: &HeaderValue) -> Result<String, ApiError> {
    match value.to_str() {
        Ok(key)
            if (1..=MAX_KEY_LENGTH).contains(&key.len())
                && key.bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            Ok(key.to_owned())
        }
        _ => Err(invalid_key(&format!(
            "should have 1 to {MAX_KEY_LENGTH} visible ASCII characters and no spaces"
        ))),
    }
}

fn invalid_key(why: &str) -> ApiError {
    ApiError::Unprocessable(format!("Idempotency-Key: {why}"))
}

impl IdempotencyKey {
    /// Returns the stored form of the key: with a digest of the path and of the JSON objects in
    /// `body`.
    pub(crate) fn with_body<'a>(
        self,
        state: &GatewayState,
        body: impl IntoIterator<Item = &'a Map<String, Value>>,
    ) -> Option<RequestKey> {
        let mut digest = Sha256::new();
        if self.is_present() {
            body.into_iter()
                .for_each(|object| hash_object(object, &mut digest));
        }
        self.with_digest(state, digest)
    }

    /// Returns the stored form of the key for a body that is not JSON; `digest` covers the relevant
    /// parts of the body.
    pub(crate) fn with_digest(self, state: &GatewayState, digest: Sha256) -> Option<RequestKey> {
        let body = digest.finalize();
        let digest = hex::encode(
            Sha256::new()
                .chain_update(self.path)
                .chain_update([0])
                .chain_update(body)
                .finalize(),
        );
        let expires_at = state.process.clock.now() + KEY_TTL;
        let (user_id, route) = (effective_user_id(), self.route);
        self.key.map(|key| RequestKey {
            user_id,
            route,
            name: key,
            part: 0,
            digest,
            expires_at,
        })
    }

    /// `true` if the client sent a key.
    pub(crate) fn is_present(&self) -> bool {
        self.key.is_some()
    }
}

/// Hashes a value in canonical form: the order of an object's fields does not matter.
fn hash_canonical(value: &Value, into: &mut Sha256) {
    match value {
        Value::Object(fields) => hash_object(fields, into),
        Value::Array(items) => {
            into.update(b"[");
            for item in items {
                hash_canonical(item, into);
                into.update(b",");
            }
            into.update(b"]");
        }
        plain => into.update(plain.to_string()),
    }
}

fn hash_object(fields: &Map<String, Value>, into: &mut Sha256) {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(key, _)| *key);
    into.update(b"{");
    for (key, value) in fields {
        into.update(Value::from(key.as_str()).to_string());
        into.update(b":");
        hash_canonical(value, into);
        into.update(b",");
    }
    into.update(b"}");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn digest(value: &Value) -> Vec<u8> {
        let mut digest = Sha256::new();
        hash_canonical(value, &mut digest);
        digest.finalize().to_vec()
    }

    #[test]
    fn digest_ignores_only_the_order_of_fields() {
        assert_eq!(
            digest(&json!({ "a": 1, "b": { "c": [1, 2], "d": null } })),
            digest(&json!({ "b": { "d": null, "c": [1, 2] }, "a": 1 }))
        );
        let all = [
            json!({}),
            json!([]),
            json!(null),
            json!("null"),
            json!({ "a": 1 }),
            json!({ "a": "1" }),
            json!([1, 2]),
            json!([2, 1]),
            json!([[1], 2]),
            json!([[1, 2]]),
        ];
        for (n, one) in all.iter().enumerate() {
            assert!(
                all.iter()
                    .skip(n + 1)
                    .all(|other| digest(one) != digest(other)),
                "{one}"
            );
        }
    }

    #[test]
    fn key_must_be_visible_ascii_within_the_length_limit() {
        for fine in ["a", "9f8-_.:/~!", &"x".repeat(MAX_KEY_LENGTH)] {
            assert!(
                HeaderValue::from_str(fine).is_ok_and(|value| parse_key(&value).is_ok()),
                "{fine}"
            );
        }
        for bad in [
            &b""[..],
            b" ",
            b"a b",
            b"\t",
            "\u{e9}".as_bytes(),
            &[b'x'; MAX_KEY_LENGTH + 1],
        ] {
            assert!(
                HeaderValue::from_bytes(bad).is_ok_and(|value| parse_key(&value).is_err()),
                "{bad:?}"
            );
        }
    }
}
