//! One provider's HTTP: bounded in time, size and tries, with errors that a model may read.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::failed;
use crate::tools::ToolError;

/// The most that is read of an answer, in bytes.
const LONGEST_ANSWER: usize = 8 << 20;
/// The most that is read of a refusal, in bytes.
const LONGEST_REFUSAL: usize = 16 << 10;
/// How much of a provider's own words goes into an error, in characters.
const MOST_WORDS: usize = 300;

/// When a request is made again that was refused for the moment or got lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How often it is made at most.
    pub tries: u32,
    /// How long to wait after the first try; twice as long after each further one.
    pub wait: Duration,
    /// The longest wait that a provider may ask for.
    pub longest: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            tries: 3,
            wait: Duration::from_millis(500),
            longest: Duration::from_secs(5),
        }
    }
}

/// A provider's server.
#[derive(Debug, Clone)]
pub(super) struct Remote {
    /// What the provider is called.
    pub(super) name: &'static str,
    client: Client,
    base: String,
    /// Sent with every request.
    headers: HeaderMap,
    /// Kept out of what a model reads.
    key: Option<SecretString>,
    limit: Duration,
    patience: Patience,
}

/// An answer that was read whole.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) content_type: String,
    pub(super) body: Vec<u8>,
}

impl Remote {
    /// The server at `base`, or what is wrong with that address.
    pub(super) fn new(
        name: &'static str,
        client: Client,
        base: &str,
        limit: Duration,
        patience: Patience,
    ) -> Result<Self, String> {
        let usable = Url::parse(base)
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.query().is_none());
        if !usable {
            return Err("`base_url` must be an http or https address without a query".to_owned());
        }
        let base = base.trim_end_matches('/').to_owned();
        Ok(Self {
            name,
            client,
            base,
            headers: HeaderMap::new(),
            key: None,
            limit,
            patience,
        })
    }

    /// Sends `key` in the header `header`, after `scheme`.
    pub(super) fn with_key(
        mut self,
        header: HeaderName,
        scheme: &str,
        key: Option<SecretString>,
    ) -> Result<Self, String> {
        if let Some(key) = &key {
            let value = HeaderValue::from_str(&format!("{scheme}{}", key.expose_secret()));
            let mut value =
                value.map_err(|_| "its key has characters that cannot be sent".to_owned())?;
            value.set_sensitive(true);
            self.headers.insert(header, value);
        }
        self.key = key;
        Ok(self)
    }

    /// Sends `value` in the header `header`.
    pub(super) fn with_header(mut self, header: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(header, value);
        self
    }

    /// A key that is sent otherwise, to be kept out of what a model reads.
    pub(super) fn hiding(mut self, key: Option<SecretString>) -> Self {
        self.key = key;
        self
    }

    /// The provider's address without a path.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    pub(super) fn get(&self, path: &str) -> RequestBuilder {
        self.request(Method::GET, path)
    }

    pub(super) fn post(&self, path: &str) -> RequestBuilder {
        self.request(Method::POST, path)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client
            .request(method, format!("{}{path}", self.base))
            .headers(self.headers.clone())
            .timeout(self.limit)
    }

    /// Sends a request whose answer is JSON.
    pub(super) async fn json(&self, request: RequestBuilder) -> Result<Value, ToolError> {
        let answer = self.ask(request).await?;
        serde_json::from_slice(&answer.body)
            .map_err(|_| failed(format_args!("{} gave an answer that is no JSON", self.name)))
    }

    /// Sends a request and reads its answer; any status but success is an error.
    pub(super) async fn ask(&self, mut request: RequestBuilder) -> Result<Answer, ToolError> {
        let mut wait = self.patience.wait;
        for tries_left in (0..self.patience.tries.max(1)).rev() {
            let again = request.try_clone().filter(|_| tries_left > 0);
            let pause = match request.send().await {
                Ok(response) => {
                    let asked = seconds_to_wait(&response).unwrap_or(wait);
                    // The model can do something better than to wait for long.
                    if again.is_none()
                        || !is_for_the_moment(response.status())
                        || asked > self.patience.longest
                    {
                        return self.read(response).await;
                    }
                    asked
                }
                Err(error) if again.is_some() && error.is_connect() => wait,
                Err(error) => return Err(self.lost(error)),
            };
            let Some(again) = again else { break };
            tokio::time::sleep(pause).await;
            (request, wait) = (again, wait * 2);
        }
        Err(failed(format_args!("{} cannot be reached", self.name)))
    }

    async fn read(&self, mut response: Response) -> Result<Answer, ToolError> {
        let status = response.status();
        let most = if status.is_success() {
            LONGEST_ANSWER
        } else {
            LONGEST_REFUSAL
        };
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned();
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.lost(error))? {
            body.extend_from_slice(&piece);
            if body.len() > most && status.is_success() {
                return Err(failed(format_args!(
                    "{} gave an answer longer than {} MiB",
                    self.name,
                    most >> 20
                )));
            }
            if body.len() > most {
                break;
            }
        }
        if status.is_success() {
            Ok(Answer {
                status,
                content_type,
                body,
            })
        } else {
            Err(self.refused(status, &body))
        }
    }

    fn refused(&self, status: StatusCode, body: &[u8]) -> ToolError {
        // Cut afterwards: half of a key is no word that could be found.
        let words: String = self
            .without_key(&words_of(body))
            .chars()
            .take(MOST_WORDS)
            .collect();
        let colon = if words.is_empty() { "" } else { ": " };
        failed(format_args!(
            "{} answered {status}{colon}{words}",
            self.name
        ))
    }

    fn lost(&self, error: reqwest::Error) -> ToolError {
        if error.is_timeout() {
            return failed(format_args!(
                "{} took longer than {} seconds",
                self.name,
                self.limit.as_secs_f64()
            ));
        }
        let what = if error.is_connect() {
            "cannot be reached"
        } else {
            "broke off its answer"
        };
        tracing::debug!(provider = self.name, error = %error.without_url(), "a web tool's request was lost");
        failed(format_args!("{} {what}", self.name))
    }

    fn without_key(&self, words: &str) -> String {
        match &self.key {
            Some(key) => words.replace(key.expose_secret(), "***"),
            None => words.to_owned(),
        }
    }
}

/// Whether the same request may succeed in a moment.
fn is_for_the_moment(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || matches!(status.as_u16(), 500 | 502 | 503 | 504)
}

fn seconds_to_wait(response: &Response) -> Option<Duration> {
    let seconds: f64 = response
        .headers()
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// What a refusal says in words, if it says so in one of the usual places.
fn words_of(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let words = match serde_json::from_str::<Value>(&text) {
        Ok(said) => [
            "/detail/error",
            "/error/message",
            "/error/detail",
            "/detail",
            "/error",
            "/message",
        ]
        .iter()
        .find_map(|place| {
            said.pointer(place)
                .and_then(Value::as_str)
                .map(str::to_owned)
        })
        .unwrap_or_default(),
        Err(_) if text.trim_start().starts_with('<') => String::new(),
        Err(_) => text.into_owned(),
    };
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}
