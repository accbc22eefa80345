//! Requests that may be sent again: a client names one by `Idempotency-Key`, and what it made is answered, not made twice.

use std::future::Future;
use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use chrono::TimeDelta;
use harness::runtime::actor_context::effective_user_id;
use harness::runtime::fail_points;
use harness::runtime::runs::store::{Known, Made, RequestKey};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::error::ApiError;
use crate::routes::Reply;
use crate::state::GatewayState;

/// The header that names a request.
pub(crate) const HEADER: &str = "idempotency-key";
/// The header that tells an answer to a request that came before.
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// The longest name of a request.
pub(crate) const LONGEST: usize = 255;
/// How long a request is known.
const KEPT: TimeDelta = TimeDelta::hours(24);

/// How the request is called, if its client gave it a name, and what it asks for besides its body.
#[derive(Debug)]
pub(crate) struct Repeatable {
    name: Option<String>,
    route: String,
    path: String,
}

impl FromRequestParts<Arc<GatewayState>> for Repeatable {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        _state: &Arc<GatewayState>,
    ) -> Result<Self, ApiError> {
        let mut names = parts.headers.get_all(HEADER).iter();
        let name = names.next().map(read_name).transpose()?;
        if names.next().is_some() {
            return Err(refused("should be sent once"));
        }
        let route = parts
            .extensions
            .get::<MatchedPath>()
            .map(|route| route.as_str().to_owned());
        Ok(Self {
            name,
            route: route.unwrap_or_default(),
            path: parts.uri.path().to_owned(),
        })
    }
}

/// One to 255 visible characters of ASCII.
fn read_name(value: &HeaderValue) -> Result<String, ApiError> {
    match value.to_str() {
        Ok(name)
            if (1..=LONGEST).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            Ok(name.to_owned())
        }
        _ => Err(refused(&format!(
            "should have 1 to {LONGEST} visible ASCII characters and no spaces"
        ))),
    }
}

fn refused(why: &str) -> ApiError {
    ApiError::Unprocessable(format!("Idempotency-Key: {why}"))
}

impl Repeatable {
    /// What the request with this object, or these objects, as its body is known by.
    pub(crate) fn with_body<'a>(
        self,
        state: &GatewayState,
        body: impl IntoIterator<Item = &'a Map<String, Value>>,
    ) -> Option<RequestKey> {
        let mut digest = Sha256::new();
        if self.is_named() {
            body.into_iter()
                .for_each(|object| write_object(object, &mut digest));
        }
        self.with_digest(state, digest)
    }

    /// The same for a body that is no JSON, of which `digest` has seen all that counts.
    pub(crate) fn with_digest(self, state: &GatewayState, digest: Sha256) -> Option<RequestKey> {
        let body = digest.finalize();
        let digest = hex::encode(
            Sha256::new()
                .chain_update(self.path)
                .chain_update([0])
                .chain_update(body)
                .finalize(),
        );
        let expires_at = state.clock.now() + KEPT;
        let (user_id, route) = (effective_user_id(), self.route);
        self.name.map(|name| RequestKey {
            user_id,
            route,
            name,
            part: 0,
            digest,
            expires_at,
        })
    }

    /// Whether the client gave the request a name.
    pub(crate) fn is_named(&self) -> bool {
        self.name.is_some()
    }
}

/// A value so that the same one is always written the same: the order of an object's fields means nothing.
fn write_canonical(value: &Value, into: &mut Sha256) {
    match value {
        Value::Object(fields) => write_object(fields, into),
        Value::Array(items) => {
            into.update(b"[");
            for item in items {
                write_canonical(item, into);
                into.update(b",");
            }
            into.update(b"]");
        }
        plain => into.update(plain.to_string()),
    }
}

fn write_object(fields: &Map<String, Value>, into: &mut Sha256) {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(key, _)| *key);
    into.update(b"{");
    for (key, value) in fields {
        into.update(Value::from(key.as_str()).to_string());
        into.update(b":");
        write_canonical(value, into);
        into.update(b",");
    }
    into.update(b"}");
}

/// What the request made when it came before, if it did.
pub(crate) async fn made_before(
    state: &GatewayState,
    key: Option<&RequestKey>,
) -> Result<Option<Made>, ApiError> {
    let Some(key) = key else { return Ok(None) };
    let known = state.requests.known(key, state.clock.now()).await?;
    known.map(made_of).transpose()
}

/// What a known request made; refuses another one under its key.
pub(crate) fn made_of(known: Known) -> Result<Made, ApiError> {
    match known {
        Known::Again(made) => Ok(made),
        Known::Other => Err(ApiError::Unprocessable(
            "Idempotency-Key: it was used for another request".to_owned(),
        )),
    }
}

/// Answers with what `make` gives; a request that came before is answered with `again` of what it made.
pub(crate) async fn once<A: Future<Output = Reply>>(
    state: &GatewayState,
    key: Option<&RequestKey>,
    make: impl Future<Output = Reply>,
    again: impl FnOnce(Made) -> A,
) -> Reply {
    let made = match made_before(state, key).await? {
        Some(made) => made,
        None => match make.await {
            // A twin was faster.
            Err(ApiError::KnownRequest(known)) => made_of(known)?,
            other => {
                fail_points::pass("request.made");
                return other;
            }
        },
    };
    again(made).await.map(replayed)
}

/// Marks an answer as one to a request that came before.
pub(crate) fn replayed(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn digest(value: &Value) -> Vec<u8> {
        let mut digest = Sha256::new();
        write_canonical(value, &mut digest);
        digest.finalize().to_vec()
    }

    #[test]
    fn the_order_of_fields_means_nothing_and_all_else_does() {
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
    fn a_name_is_visible_and_not_too_long() {
        for fine in ["a", "9f8-_.:/~!", &"x".repeat(LONGEST)] {
            assert!(
                HeaderValue::from_str(fine).is_ok_and(|value| read_name(&value).is_ok()),
                "{fine}"
            );
        }
        for bad in [
            &b""[..],
            b" ",
            b"a b",
            b"\t",
            "\u{e9}".as_bytes(),
            &[b'x'; LONGEST + 1],
        ] {
            assert!(
                HeaderValue::from_bytes(bad).is_ok_and(|value| read_name(&value).is_err()),
                "{bad:?}"
            );
        }
    }
}
