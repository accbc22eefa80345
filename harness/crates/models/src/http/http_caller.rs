//! Calls of one model entry over HTTP: the request with its headers and timeouts, and the errors of
//! the provider.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use tokio::time::{Instant, timeout, timeout_at};

use super::client::{HttpResponse, SharedHttp};
use super::credentials::Credential;
use super::decoder::DecodeError;
use super::endpoint::{Endpoint, header};
use super::provider_error::ProviderError;
use super::retry_after::retry_after;
use super::transport_error::TransportError;
use super::wire::{Call, Wire};
use crate::{ModelEntry, ModelError, ModelErrorKind, ModelInfo, ModelRequest};
use deerflow_core::clock::Clock;

/// Maximum size of an error response that is read, in bytes.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Maximum length of a provider's message in an error, in characters.
const MAX_MESSAGE_CHARS: usize = 500;

/// Configuration and connections that all calls of one model share.
#[derive(Debug)]
pub(super) struct HttpCaller<W> {
    pub(super) info: ModelInfo,
    pub(super) entry: ModelEntry,
    pub(super) wire: W,
    pub(super) endpoint: Endpoint,
    pub(super) http: SharedHttp,
    pub(super) clock: Arc<dyn Clock>,
}

impl<W: Wire> HttpCaller<W> {
    pub(super) fn key(&self) -> Result<Option<Credential>, ModelError> {
        self.endpoint
            .credentials
            .current()
            .map_err(|failure| self.error(ModelErrorKind::Auth, failure))
    }

    pub(super) async fn post(
        &self,
        request: &ModelRequest,
        key: Option<&Credential>,
    ) -> Result<HttpResponse, ModelError> {
        let settings = self
            .entry
            .settings_for(request)
            .map_err(|error| self.error(ModelErrorKind::Config, error.to_string()))?;
        let Call {
            mut url,
            headers,
            body,
        } = self.wire.call(request, &settings, &self.endpoint, key);
        let mut all = HeaderMap::with_capacity(8);
        all.insert(
            ACCEPT,
            HeaderValue::from_static("text/event-stream, application/json"),
        );
        all.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in headers {
            let (name, value) = header(name, &value).ok_or_else(|| {
                self.error(
                    ModelErrorKind::Auth,
                    "its key has characters that cannot be sent".to_owned(),
                )
            })?;
            all.append(name, value);
        }
        // The entry's headers come last so that they can replace ours.
        all.extend(self.endpoint.headers.clone());
        if !self.endpoint.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.endpoint.query);
        }
        // The parts must not use memory while the provider works.
        let chunks = body
            .into_chunks()
            .map_err(|error| self.error(ModelErrorKind::Config, error.to_string()))?;
        let limit = self.endpoint.limits.first_byte;
        let response = match timeout(limit, self.http.post(&url, all, chunks)).await {
            Ok(sent) => sent.map_err(|error| self.transport_error(&error))?,
            Err(_) => return Err(self.first_byte_timeout(limit)),
        };
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(self.response_error(response, key).await)
        }
    }

    pub(super) fn error(&self, kind: ModelErrorKind, message: String) -> ModelError {
        let message = self
            .endpoint
            .redact(&message)
            .chars()
            .take(MAX_MESSAGE_CHARS)
            .collect();
        ModelError {
            model: self.info.name.clone(),
            kind,
            message,
            status: None,
            retry_after: None,
        }
    }

    fn first_byte_timeout(&self, limit: Duration) -> ModelError {
        self.error(
            ModelErrorKind::Stalled,
            format!(
                "no response from the provider for {} seconds",
                limit.as_secs_f64()
            ),
        )
    }

    pub(super) fn idle_timeout(&self, streamed: bool) -> ModelError {
        let limit = self.endpoint.limits.idle;
        if !streamed {
            return self.first_byte_timeout(limit);
        }
        self.error(
            ModelErrorKind::Stalled,
            format!(
                "the stream delivered no data for {} seconds",
                limit.as_secs_f64()
            ),
        )
    }

    pub(super) fn overall_timeout(&self) -> ModelError {
        let limit = self.endpoint.limits.whole.as_secs();
        self.error(
            ModelErrorKind::Stalled,
            format!("the answer was not complete after {limit} seconds"),
        )
    }

    pub(super) fn transport_error(&self, error: &TransportError) -> ModelError {
        let kind = if error.invalid_request {
            ModelErrorKind::Config
        } else {
            ModelErrorKind::Transient
        };
        self.error(kind, error.to_string())
    }

    pub(super) fn decode_error(&self, error: DecodeError, key: Option<&Credential>) -> ModelError {
        let message = redacted(&error.to_string(), key);
        match error {
            DecodeError::ProviderError(provider_error) => {
                let kind = provider_error.kind(None, None);
                ModelError {
                    status: provider_error.status,
                    retry_after: provider_error.retry_after,
                    ..self.error(kind, message)
                }
            }
            _ => self.error(ModelErrorKind::Transient, message),
        }
    }

    /// Reads an error response and returns its error.
    async fn response_error(
        &self,
        mut response: HttpResponse,
        key: Option<&Credential>,
    ) -> ModelError {
        let status = response.status().as_u16();
        let headers = response.take_headers();
        let wait = retry_after(|name| headers.get(name)?.to_str().ok(), self.clock.now());
        let mut body = Vec::new();
        let deadline = Instant::now() + self.endpoint.limits.idle.min(Duration::from_secs(10));
        while body.len() < MAX_ERROR_BYTES
            && let Ok(Ok(Some(bytes))) = timeout_at(deadline, response.chunk()).await
        {
            body.extend_from_slice(&bytes);
        }
        let provider_error = ProviderError::read_body(&body);
        let kind = provider_error.kind(Some(status), wait);
        let message = redacted(&provider_error.message, key);
        let message = if message.is_empty() {
            format!("HTTP status {status}")
        } else {
            message
        };
        ModelError {
            status: Some(status),
            retry_after: wait.or(provider_error.retry_after),
            ..self.error(kind, message)
        }
    }
}

/// Returns `text` without `key`.
fn redacted(text: &str, key: Option<&Credential>) -> String {
    key.map_or_else(|| text.to_owned(), |key| key.redact(text))
}
