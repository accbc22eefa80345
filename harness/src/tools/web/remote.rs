//! HTTP client for one provider: limits time, response size and retries, and returns errors that a
//! model may read.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::failure::failed;
use crate::tools::ToolError;

/// Maximum size of a successful response, in bytes.
const MAX_RESPONSE_BYTES: usize = 8 << 20;
/// Maximum number of bytes read of an error response.
const MAX_ERROR_BYTES: usize = 16 << 10;
/// Maximum length of a provider's message in an error text, in characters.
const MAX_ERROR_CHARS: usize = 300;

/// Retry budget for requests that fail temporarily.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryBudget {
    /// Maximum number of attempts.
    pub tries: u32,
    /// Delay after the first attempt; doubles after each further attempt.
    pub wait: Duration,
    /// Longest `Retry-After` that is honoured; a longer one ends the retries.
    pub longest: Duration,
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self {
            tries: 3,
            wait: Duration::from_millis(500),
            longest: Duration::from_secs(5),
        }
    }
}

/// Client of a provider's server.
#[derive(Debug, Clone)]
pub(super) struct Remote {
    /// Name of the provider.
    pub(super) name: &'static str,
    client: Client,
    base: String,
    /// Headers of every request.
    headers: HeaderMap,
    /// Key that is redacted from texts for the model.
    key: Option<SecretString>,
    limit: Duration,
    retry_budget: RetryBudget,
}

/// Response with its complete body.
#[derive(Debug)]
pub(super) struct ProviderResponse {
    pub(super) status: StatusCode,
    pub(super) content_type: String,
    pub(super) body: Vec<u8>,
}

impl Remote {
    /// Creates a client for the server at `base`, or describes why that address is invalid.
    pub(super) fn new(
        name: &'static str,
        client: Client,
        base: &str,
        limit: Duration,
        retry_budget: RetryBudget,
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
            retry_budget,
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

    /// Redacts a key that is sent in another part of the request.
    pub(super) fn redacting(mut self, key: Option<SecretString>) -> Self {
        self.key = key;
        self
    }

    /// Base URL of the provider, without a path.
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

    /// Sends a request and parses the response as JSON.
    pub(super) async fn json(&self, request: RequestBuilder) -> Result<Value, ToolError> {
        let answer = self.ask(request).await?;
        serde_json::from_slice(&answer.body)
            .map_err(|_| failed(format_args!("{} gave an answer that is no JSON", self.name)))
    }

    /// Sends a request with retries and reads the response. Any status but success is an error.
    pub(super) async fn ask(
        &self,
        mut request: RequestBuilder,
    ) -> Result<ProviderResponse, ToolError> {
        let mut wait = self.retry_budget.wait;
        for tries_left in (0..self.retry_budget.tries.max(1)).rev() {
            let retry = request.try_clone().filter(|_| tries_left > 0);
            let pause = match request.send().await {
                Ok(response) => {
                    let delay = retry_after(&response).unwrap_or(wait);
                    // Instead of a long wait, the error lets the model continue without this
                    // provider.
                    if retry.is_none()
                        || !is_transient(response.status())
                        || delay > self.retry_budget.longest
                    {
                        return self.read(response).await;
                    }
                    delay
                }
                Err(error) if retry.is_some() && error.is_connect() => wait,
                Err(error) => return Err(self.transport_error(error)),
            };
            let Some(retry) = retry else { break };
            tokio::time::sleep(pause).await;
            (request, wait) = (retry, wait * 2);
        }
        Err(failed(format_args!("{} cannot be reached", self.name)))
    }

    async fn read(&self, mut response: Response) -> Result<ProviderResponse, ToolError> {
        let status = response.status();
        let max_bytes = if status.is_success() {
            MAX_RESPONSE_BYTES
        } else {
            MAX_ERROR_BYTES
        };
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned();
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.transport_error(error))?
        {
            body.extend_from_slice(&chunk);
            if body.len() > max_bytes && status.is_success() {
                return Err(failed(format_args!(
                    "{} gave an answer longer than {} MiB",
                    self.name,
                    max_bytes >> 20
                )));
            }
            if body.len() > max_bytes {
                break;
            }
        }
        if status.is_success() {
            Ok(ProviderResponse {
                status,
                content_type,
                body,
            })
        } else {
            Err(self.status_error(status, &body))
        }
    }

    fn status_error(&self, status: StatusCode, body: &[u8]) -> ToolError {
        // Redacted before it is shortened, because part of a key would not be recognized.
        let message: String = self
            .redacted(&error_text(body))
            .chars()
            .take(MAX_ERROR_CHARS)
            .collect();
        let colon = if message.is_empty() { "" } else { ": " };
        failed(format_args!(
            "{} answered {status}{colon}{message}",
            self.name
        ))
    }

    fn transport_error(&self, error: reqwest::Error) -> ToolError {
        if error.is_timeout() {
            return failed(format_args!(
                "{} took longer than {} seconds",
                self.name,
                self.limit.as_secs_f64()
            ));
        }
        let reason = if error.is_connect() {
            "cannot be reached"
        } else {
            "closed the connection during its answer"
        };
        tracing::debug!(provider = self.name, error = %error.without_url(), "request of a web tool failed");
        failed(format_args!("{} {reason}", self.name))
    }

    fn redacted(&self, message: &str) -> String {
        match &self.key {
            Some(key) => message.replace(key.expose_secret(), "***"),
            None => message.to_owned(),
        }
    }
}

/// Reports whether the same request may succeed shortly.
fn is_transient(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || matches!(status.as_u16(), 500 | 502 | 503 | 504)
}

fn retry_after(response: &Response) -> Option<Duration> {
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

/// Returns the message of an error response, if it is in one of the usual fields.
fn error_text(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let message = match serde_json::from_str::<Value>(&text) {
        Ok(parsed) => [
            "/detail/error",
            "/error/message",
            "/error/detail",
            "/detail",
            "/error",
            "/message",
        ]
        .iter()
        .find_map(|pointer| {
            parsed
                .pointer(pointer)
                .and_then(Value::as_str)
                .map(str::to_owned)
        })
        .unwrap_or_default(),
        Err(_) if text.trim_start().starts_with('<') => String::new(),
        Err(_) => text.into_owned(),
    };
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
