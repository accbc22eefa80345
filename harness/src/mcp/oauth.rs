//! Tokens for servers that want some: fetched when they are needed, kept until shortly before they end.

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

use super::http::Trouble;
use crate::runtime::tasks::{TaskKind, Tasks};

/// How long a token endpoint may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a failure stands before the endpoint is asked again: calls that come one after another must not wait for it each.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// The longest answer of a token endpoint, in bytes.
const LONGEST_ANSWER: usize = 256 * 1024;
/// How long a token is good when the endpoint does not say, in seconds.
const USUAL_LIFE: u64 = 3600;
/// The longest life that is believed, in seconds.
const LONGEST_LIFE: u64 = 366 * 24 * 3600;

/// Where tokens come from.
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

/// Why there is no token. No text shows a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenError {
    #[error("`oauth.{0}` is missing for this grant")]
    Missing(&'static str),
    #[error("the token endpoint cannot be reached: {0}")]
    Unreachable(Trouble),
    #[error("the token endpoint did not answer within {} s", PATIENCE.as_secs())]
    Late,
    #[error("the token endpoint answered with status {0}")]
    Refused(u16),
    #[error("the token endpoint's answer has no usable `{0}`")]
    Answer(String),
    #[error("the token was not fetched: {0}")]
    Broken(String),
}

/// The tokens of one server. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Tokens {
    spec: Arc<OAuthSpec>,
    client: Client,
    tasks: Tasks,
    held: Arc<Mutex<Held>>,
}

#[derive(Default)]
struct Held {
    header: Option<(HeaderValue, Instant)>,
    /// A refresh token that has taken the configured one's place.
    rotated: Option<SecretString>,
    /// The fetch under way: whoever needs a token meanwhile gets what comes of it.
    fetch: Option<Shared<Fetch>>,
    /// What came of the last one, and until when nobody asks again.
    failed: Option<(TokenError, Instant)>,
}

type Fetch = BoxFuture<'static, Result<HeaderValue, TokenError>>;

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
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
            held: Arc::default(),
        }
    }

    /// The `Authorization` header that holds now. Nobody waits for it longer than a fetch may take.
    ///
    /// A fetch goes on when nobody waits for it any more: an answer that is thrown away may hold the only refresh token that is
    /// still good.
    pub(super) async fn header(&self) -> Result<HeaderValue, TokenError> {
        let fetch = {
            let mut held = self.held.lock();
            let now = Instant::now();
            match (&held.header, &held.failed) {
                (Some((header, until)), _) if now < *until => return Ok(header.clone()),
                (_, Some((error, until))) if now < *until => return Err(error.clone()),
                _ => held.fetch.get_or_insert_with(|| self.begin_fetch()).clone(),
            }
        };
        fetch.await
    }

    /// Has the next who asks fetch a new one.
    pub(super) fn forget(&self) {
        self.held.lock().header = None;
    }

    fn begin_fetch(&self) -> Shared<Fetch> {
        let all = self.clone();
        let fetch = async move {
            let ended = Ended(&all);
            let fetched = all.fetch().await;
            ended.with(&fetched);
            fetched
        };
        let fetching = self.tasks.spawn(TaskKind::Finish, "mcp token", fetch);
        let fetched = async {
            match fetching.await {
                Ok(Ok(header)) => header,
                Ok(Err(panicked)) => Err(TokenError::Broken(panicked.to_string())),
                Err(gone) => Err(TokenError::Broken(gone.to_string())),
            }
        };
        fetched.boxed().shared()
    }

    async fn fetch(&self) -> Result<HeaderValue, TokenError> {
        let asked = Instant::now();
        let form = self.spec.form(self.held.lock().rotated.as_ref())?;
        let answer = timeout(PATIENCE, self.ask(form))
            .await
            .map_err(|_late| TokenError::Late)??;
        let Grantee {
            header,
            life,
            rotated,
        } = self.spec.read(&answer)?;
        // A token that ends sooner than the skew is used by those who waited for it.
        let fresh = life.saturating_sub(Duration::from_secs(self.spec.refresh_skew_seconds));
        let mut held = self.held.lock();
        held.rotated = rotated.or(held.rotated.take());
        held.header = Some((header.clone(), asked + fresh));
        drop(held);
        Ok(header)
    }

    async fn ask(&self, form: String) -> Result<Map<String, Value>, TokenError> {
        let unreachable = |error: reqwest::Error| TokenError::Unreachable(Trouble::behind(&error));
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
            if body.len() > LONGEST_ANSWER {
                return Err(TokenError::Answer("length".to_owned()));
            }
        }
        serde_json::from_slice(&body)
            .map_err(|_no_object| TokenError::Answer("JSON object".to_owned()))
    }
}

/// A fetch under way. However it ends, also by a panic, the next who asks may begin another.
struct Ended<'a>(&'a Tokens);

impl Ended<'_> {
    fn with(self, fetched: &Result<HeaderValue, TokenError>) {
        self.0.held.lock().failed = fetched
            .as_ref()
            .err()
            .map(|error| (error.clone(), Instant::now() + AFTER_FAILURE));
    }
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.held.lock().fetch = None;
    }
}

/// What an endpoint granted.
struct Grantee {
    header: HeaderValue,
    life: Duration,
    rotated: Option<SecretString>,
}

impl OAuthSpec {
    /// The body of a token request.
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
            Url::parse("form:").map_err(|error| TokenError::Broken(error.to_string()))?;
        encoder.query_pairs_mut().extend_pairs(
            fields
                .into_iter()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        Ok(encoder.query().unwrap_or_default().to_owned())
    }

    /// What an answer grants.
    fn read(&self, answer: &Map<String, Value>) -> Result<Grantee, TokenError> {
        let text = |field: &str| {
            answer
                .get(field)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let token =
            text(&self.token_field).ok_or_else(|| TokenError::Answer(self.token_field.clone()))?;
        let kind = text(&self.token_type_field).unwrap_or(&self.default_token_type);
        // Many say `bearer` and take only `Bearer`.
        let kind = if kind.eq_ignore_ascii_case("bearer") {
            "Bearer"
        } else {
            kind
        };
        let header = HeaderValue::from_str(&format!("{kind} {token}"));
        let mut header =
            header.map_err(|_unsendable| TokenError::Answer(self.token_field.clone()))?;
        header.set_sensitive(true);
        let seconds = answer
            .get(&self.expires_in_field)
            .and_then(|life| match life {
                Value::String(text) => text.trim().parse::<f64>().ok(),
                other => other.as_f64(),
            });
        let seconds = seconds
            .filter(|seconds| seconds.is_finite())
            .map_or(USUAL_LIFE, |seconds| {
                (seconds as u64).clamp(1, LONGEST_LIFE)
            });
        Ok(Grantee {
            header,
            life: Duration::from_secs(seconds),
            rotated: text("refresh_token").map(SecretString::from),
        })
    }
}

#[cfg(test)]
#[path = "oauth_tests.rs"]
mod tests;
