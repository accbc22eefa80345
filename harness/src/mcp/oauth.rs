//! OAuth access tokens of servers: fetched on demand and cached until shortly before they expire.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::{Instant, timeout};

use super::http::TransportFailure;
use crate::runtime::tasks::{TaskKind, Tasks};

/// Timeout of a request to a token endpoint.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// Time for which a failed fetch is cached, so that consecutive calls do not each wait for the
/// endpoint.
const FAILURE_TTL: Duration = Duration::from_secs(5);
/// Maximum size of a token endpoint's response, in bytes.
const MAX_RESPONSE_BYTES: usize = 256 * 1024;
/// Lifetime of a token if the endpoint states none, in seconds.
const DEFAULT_LIFETIME_SECS: u64 = 3600;
/// Maximum lifetime that is accepted from an endpoint, in seconds.
const MAX_LIFETIME_SECS: u64 = 366 * 24 * 3600;

/// OAuth settings of one server.
#[derive(Clone, Deserialize)]
#[serde(default)]
pub struct OAuthSpec {
    pub(super) enabled: bool,
    pub(super) token_url: String,
    grant_type: Grant,
    client_id: Option<String>,
    client_secret: Option<SecretString>,
    refresh_token: Option<SecretString>,
    scope: Option<String>,
    audience: Option<String>,
    token_field: String,
    token_type_field: String,
    expires_in_field: String,
    default_token_type: String,
    refresh_skew_seconds: u64,
    extra_token_params: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Grant {
    ClientCredentials,
    RefreshToken,
}

impl Default for OAuthSpec {
    fn default() -> Self {
        Self {
            enabled: true,
            token_url: String::new(),
            grant_type: Grant::ClientCredentials,
            client_id: None,
            client_secret: None,
            refresh_token: None,
            scope: None,
            audience: None,
            token_field: "access_token".to_owned(),
            token_type_field: "token_type".to_owned(),
            expires_in_field: "expires_in".to_owned(),
            default_token_type: "Bearer".to_owned(),
            refresh_skew_seconds: 60,
            extra_token_params: BTreeMap::new(),
        }
    }
}

impl fmt::Debug for OAuthSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthSpec")
            .field("enabled", &self.enabled)
            .field("grant_type", &self.grant_type)
            .finish_non_exhaustive()
    }
}

/// Failure to get a token. The texts contain no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenError {
    #[error("`oauth.{0}` is missing for this grant")]
    Missing(&'static str),
    #[error("the token endpoint cannot be reached: {0}")]
    Unreachable(TransportFailure),
    #[error("the token endpoint did not answer within {} s", REQUEST_TIMEOUT.as_secs())]
    TimedOut,
    #[error("the token endpoint answered with status {0}")]
    Refused(u16),
    #[error("the token endpoint's answer has no usable `{0}`")]
    MalformedResponse(String),
    #[error("the token was not fetched: {0}")]
    Failed(String),
}

/// Token cache of one server. Clones share the cache.
#[derive(Debug, Clone)]
pub(super) struct Tokens {
    spec: Arc<OAuthSpec>,
    client: Client,
    tasks: Tasks,
    cache: Arc<Mutex<TokenCache>>,
}

#[derive(Default)]
struct TokenCache {
    header: Option<(HeaderValue, Instant)>,
    /// Newest refresh token from the endpoint, which replaces the configured one.
    rotated: Option<SecretString>,
    /// Running fetch; concurrent callers share its result.
    fetch: Option<Shared<Fetch>>,
    /// Error of the last fetch, and the time until which it is returned without a new request.
    failed: Option<(TokenError, Instant)>,
}

type Fetch = BoxFuture<'static, Result<HeaderValue, TokenError>>;

impl fmt::Debug for TokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenCache")
            .field("present", &self.header.is_some())
            .finish_non_exhaustive()
    }
}

impl Tokens {
    pub(super) fn new(spec: OAuthSpec, client: Client, tasks: Tasks) -> Self {
        Self {
            spec: Arc::new(spec),
            client,
            tasks,
            cache: Arc::default(),
        }
    }

    /// Returns a valid `Authorization` header, and fetches a token if necessary. Callers wait at
    /// most [`REQUEST_TIMEOUT`].
    ///
    /// A fetch continues after its callers are cancelled: the response may contain the only refresh
    /// token that is still valid.
    pub(super) async fn header(&self) -> Result<HeaderValue, TokenError> {
        let fetch = {
            let mut cache = self.cache.lock();
            let now = Instant::now();
            match (&cache.header, &cache.failed) {
                (Some((header, until)), _) if now < *until => return Ok(header.clone()),
                (_, Some((error, until))) if now < *until => return Err(error.clone()),
                _ => cache
                    .fetch
                    .get_or_insert_with(|| self.begin_fetch())
                    .clone(),
            }
        };
        fetch.await
    }

    /// Discards the cached token, so that the next call fetches a new one.
    pub(super) fn forget(&self) {
        self.cache.lock().header = None;
    }

    fn begin_fetch(&self) -> Shared<Fetch> {
        let all = self.clone();
        let fetch = async move {
            let guard = FetchGuard(&all);
            let fetched = all.fetch().await;
            guard.with(&fetched);
            fetched
        };
        let fetching = self.tasks.spawn(TaskKind::Finish, "mcp token", fetch);
        let fetched = async {
            match fetching.await {
                Ok(Ok(header)) => header,
                Ok(Err(panicked)) => Err(TokenError::Failed(panicked.to_string())),
                Err(dropped) => Err(TokenError::Failed(dropped.to_string())),
            }
        };
        fetched.boxed().shared()
    }

    async fn fetch(&self) -> Result<HeaderValue, TokenError> {
        let requested_at = Instant::now();
        let form = self.spec.form(self.cache.lock().rotated.as_ref())?;
        let response = timeout(REQUEST_TIMEOUT, self.request_token(form))
            .await
            .map_err(|_late| TokenError::TimedOut)??;
        let TokenGrant {
            header,
            lifetime,
            rotated,
        } = self.spec.read(&response)?;
        // A token whose lifetime is shorter than the skew is still used by the callers of this
        // fetch.
        let fresh = lifetime.saturating_sub(Duration::from_secs(self.spec.refresh_skew_seconds));
        let mut cache = self.cache.lock();
        cache.rotated = rotated.or(cache.rotated.take());
        cache.header = Some((header.clone(), requested_at + fresh));
        drop(cache);
        Ok(header)
    }

    async fn request_token(&self, form: String) -> Result<Map<String, Value>, TokenError> {
        let unreachable =
            |error: reqwest::Error| TokenError::Unreachable(TransportFailure::from_error(&error));
        let request = self
            .client
            .post(&self.spec.token_url)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let mut response = request
            .header("accept", "application/json")
            .body(form)
            .send()
            .await
            .map_err(unreachable)?;
        if !response.status().is_success() {
            return Err(TokenError::Refused(response.status().as_u16()));
        }
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(unreachable)? {
            body.extend_from_slice(&piece);
            if body.len() > MAX_RESPONSE_BYTES {
                return Err(TokenError::MalformedResponse("length".to_owned()));
            }
        }
        serde_json::from_slice(&body)
            .map_err(|_no_object| TokenError::MalformedResponse("JSON object".to_owned()))
    }
}

/// Guard of a running fetch. Dropping it, also during a panic, allows the next fetch.
struct FetchGuard<'a>(&'a Tokens);

impl FetchGuard<'_> {
    fn with(self, fetched: &Result<HeaderValue, TokenError>) {
        self.0.cache.lock().failed = fetched
            .as_ref()
            .err()
            .map(|error| (error.clone(), Instant::now() + FAILURE_TTL));
    }
}

impl Drop for FetchGuard<'_> {
    fn drop(&mut self) {
        self.0.cache.lock().fetch = None;
    }
}

/// Parsed response of a token endpoint.
struct TokenGrant {
    header: HeaderValue,
    lifetime: Duration,
    rotated: Option<SecretString>,
}

impl OAuthSpec {
    /// Returns the form body of a token request.
    fn form(&self, rotated: Option<&SecretString>) -> Result<String, TokenError> {
        let secret = |secret: &Option<SecretString>| {
            secret
                .as_ref()
                .map(|secret| secret.expose_secret().to_owned())
                .filter(|text| !text.is_empty())
        };
        let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let mut fields: Vec<(&str, Option<String>)> = match self.grant_type {
            Grant::ClientCredentials => {
                let id = text(&self.client_id).ok_or(TokenError::Missing("client_id"))?;
                let key =
                    secret(&self.client_secret).ok_or(TokenError::Missing("client_secret"))?;
                vec![
                    ("grant_type", Some("client_credentials".to_owned())),
                    ("client_id", Some(id)),
                    ("client_secret", Some(key)),
                ]
            }
            Grant::RefreshToken => {
                let token = rotated
                    .map(|token| token.expose_secret().to_owned())
                    .or_else(|| secret(&self.refresh_token));
                let token = token.ok_or(TokenError::Missing("refresh_token"))?;
                let grant = ("grant_type", Some("refresh_token".to_owned()));
                vec![
                    grant,
                    ("refresh_token", Some(token)),
                    ("client_id", text(&self.client_id)),
                    ("client_secret", secret(&self.client_secret)),
                ]
            }
        };
        fields.extend([
            ("scope", text(&self.scope)),
            ("audience", text(&self.audience)),
        ]);
        fields.extend(
            self.extra_token_params
                .iter()
                .map(|(name, value)| (name.as_str(), Some(value.clone()))),
        );
        let mut encoder =
            Url::parse("form:").map_err(|error| TokenError::Failed(error.to_string()))?;
        encoder.query_pairs_mut().extend_pairs(
            fields
                .into_iter()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        Ok(encoder.query().unwrap_or_default().to_owned())
    }

    /// Parses a token endpoint's response.
    fn read(&self, response: &Map<String, Value>) -> Result<TokenGrant, TokenError> {
        let text = |field: &str| {
            response
                .get(field)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let token = text(&self.token_field)
            .ok_or_else(|| TokenError::MalformedResponse(self.token_field.clone()))?;
        let kind = text(&self.token_type_field).unwrap_or(&self.default_token_type);
        // Many endpoints return `bearer` while their servers accept only `Bearer`.
        let kind = if kind.eq_ignore_ascii_case("bearer") {
            "Bearer"
        } else {
            kind
        };
        let header = HeaderValue::from_str(&format!("{kind} {token}"));
        let mut header = header
            .map_err(|_unsendable| TokenError::MalformedResponse(self.token_field.clone()))?;
        header.set_sensitive(true);
        let seconds = response
            .get(&self.expires_in_field)
            .and_then(|lifetime| match lifetime {
                Value::String(text) => text.trim().parse::<f64>().ok(),
                other => other.as_f64(),
            });
        let seconds = seconds
            .filter(|seconds| seconds.is_finite())
            .map_or(DEFAULT_LIFETIME_SECS, |seconds| {
                (seconds as u64).clamp(1, MAX_LIFETIME_SECS)
            });
        Ok(TokenGrant {
            header,
            lifetime: Duration::from_secs(seconds),
            rotated: text("refresh_token").map(SecretString::from),
        })
    }
}

#[cfg(test)]
#[path = "oauth_tests.rs"]
mod tests;
