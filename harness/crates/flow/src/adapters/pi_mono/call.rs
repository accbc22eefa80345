//! HTTP calls of a transport: timeouts, limits of size, and failures without secrets.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use deerflow_core::clock::Clock;
use deerflow_core::net::{GuardedClient, forbidden};
use deerflow_models::http::retry_after;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, Response};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::redaction::redacted;

/// Maximum size of a request body, in bytes.
const MAX_REQUEST_BYTES: usize = 16 << 20;
/// Maximum size of an answer, in bytes.
pub(super) const MAX_ANSWER_BYTES: usize = 8 << 20;
/// Maximum size of an error response that is read, in bytes.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Maximum length of a provider's text in an error, in characters.
const MAX_ERROR_CHARS: usize = 2_000;
/// Maximum delay that a provider may request.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// Timeout of calls that belong to no turn: sessions and aborts.
const SIDE_CALL_LIMIT: Duration = Duration::from_secs(30);

/// Reason why a call failed. Contains no key and no header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CallFailure {
    /// The URL or its addresses may not be called, or the request cannot be built.
    #[error("{0}")]
    Refused(String),
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Network(String),
    /// A time limit passed.
    #[error("{0}")]
    TimedOut(String),
    /// The run cancelled the turn.
    #[error("the turn was cancelled")]
    Cancelled,
    /// The status is not a success.
    #[error("HTTP status {status}{}{message}", if .message.is_empty() { "" } else { ": " })]
    Status {
        /// Status.
        status: u16,
        /// Text of the response.
        message: String,
        /// Delay that the response requests.
        retry_after: Option<Duration>,
    },
    /// A request or answer exceeds its limit.
    #[error("{0}")]
    TooLarge(String),
}

impl CallFailure {
    /// Reports whether a repetition may succeed.
    pub(super) fn is_retryable(&self) -> bool {
        match self {
            Self::Network(_) | Self::TimedOut(_) => true,
            Self::Status { status, .. } => is_retryable_status(*status),
            Self::Refused(_) | Self::Cancelled | Self::TooLarge(_) => false,
        }
    }
}

/// Reports whether a request with this response status may succeed later.
pub(super) fn is_retryable_status(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500..=599)
}

/// Reason for which a call ends early.
#[derive(Debug, Clone)]
pub struct TurnLimits {
    /// Time at which the turn is over.
    pub deadline: Option<Instant>,
    /// Cancelled when the run needs no answer.
    pub cancel: CancellationToken,
    /// Maximum time without a received byte.
    pub idle: Duration,
}

impl TurnLimits {
    /// Returns the limits of a call that belongs to no turn.
    pub(super) fn side_call() -> Self {
        Self {
            deadline: Some(Instant::now() + SIDE_CALL_LIMIT),
            cancel: CancellationToken::new(),
            idle: SIDE_CALL_LIMIT,
        }
    }

    /// Waits for `work` within the limits.
    async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, CallFailure> {
        let deadline = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(CallFailure::Cancelled),
            () = deadline => Err(CallFailure::TimedOut("the time limit of the turn passed".to_owned())),
            outcome = timeout(self.idle, work) => outcome.map_err(|_| {
                let seconds = self.idle.as_secs_f64();
                CallFailure::TimedOut(format!("no data was received for {seconds} seconds"))
            }),
        }
    }
}

/// Calls the server of one agent.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) client: GuardedClient,
    pub(super) base_url: String,
    pub(super) key: Option<SecretString>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Caller {
    /// Sends a request to a path below the base URL. Returns a response of a success status.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        limits: &TurnLimits,
    ) -> Result<Response, CallFailure> {
        let refused = |error: &dyn Error| CallFailure::Refused(self.redact(&error.to_string()));
        let url = self
            .client
            .read(&format!("{}{path}", self.base_url))
            .map_err(|error| refused(&error))?;
        let mut request = self
            .client
            .request(method, url)
            .map_err(|error| refused(&error))?
            .header(ACCEPT, "text/event-stream, application/json");
        if let Some(key) = &self.key {
            request = request.bearer_auth(key.expose_secret());
        }
        if let Some(body) = body {
            let body = serde_json::to_vec(body).map_err(|error| refused(&error))?;
            if body.len() > MAX_REQUEST_BYTES {
                let limit = MAX_REQUEST_BYTES >> 20;
                let message = format!("the request is larger than {limit} MiB");
                return Err(CallFailure::TooLarge(message));
            }
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        let response = limits
            .within(request.send())
            .await?
            .map_err(|error| self.transport_failure(error))?;
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(self.status_failure(response, limits).await)
        }
    }

    /// Returns the next bytes of a response, or `None` at its end.
    pub(super) async fn next_bytes(
        &self,
        response: &mut Response,
        limits: &TurnLimits,
    ) -> Result<Option<impl AsRef<[u8]> + use<>>, CallFailure> {
        let bytes = limits.within(response.chunk()).await?;
        bytes.map_err(|error| self.transport_failure(error))
    }

    /// Returns the whole body.
    pub(super) async fn whole_body(
        &self,
        response: &mut Response,
        limits: &TurnLimits,
    ) -> Result<Vec<u8>, CallFailure> {
        let mut body = Vec::new();
        while let Some(bytes) = self.next_bytes(response, limits).await? {
            body.extend_from_slice(bytes.as_ref());
            ensure_answer_size(body.len())?;
        }
        Ok(body)
    }

    /// Returns a text from outside without the key, at most 2,000 characters.
    pub(super) fn redact(&self, text: &str) -> String {
        redacted(text, self.key.as_ref())
            .chars()
            .take(MAX_ERROR_CHARS)
            .collect()
    }

    fn transport_failure(&self, error: reqwest::Error) -> CallFailure {
        if let Some(forbidden) = forbidden(&error) {
            return CallFailure::Refused(forbidden.to_string());
        }
        let is_builder = error.is_builder();
        let error = error.without_url();
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message = format!("{message}: {error}");
            cause = error.source();
        }
        let message = self.redact(&message);
        if is_builder {
            CallFailure::Refused(message)
        } else {
            CallFailure::Network(message)
        }
    }

    async fn status_failure(&self, mut response: Response, limits: &TurnLimits) -> CallFailure {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let wait = retry_after(|name| headers.get(name)?.to_str().ok(), self.clock.now());
        let mut body = Vec::new();
        while body.len() < MAX_ERROR_BYTES
            && let Ok(Some(bytes)) = self.next_bytes(&mut response, limits).await
        {
            body.extend_from_slice(bytes.as_ref());
        }
        body.truncate(MAX_ERROR_BYTES);
        CallFailure::Status {
            status,
            message: self.redact(&error_text(&body)),
            retry_after: wait.map(|wait| wait.min(MAX_RETRY_AFTER)),
        }
    }
}

/// Checks the size of an answer.
pub(super) fn ensure_answer_size(bytes: usize) -> Result<(), CallFailure> {
    if bytes <= MAX_ANSWER_BYTES {
        return Ok(());
    }
    let limit = MAX_ANSWER_BYTES >> 20;
    let message = format!("the answer is larger than {limit} MiB");
    Err(CallFailure::TooLarge(message))
}

/// Returns the message in an error response: that of its JSON, else its text.
fn error_text(body: &[u8]) -> String {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let message = ["/error/message", "/message", "/error", "/detail"]
        .iter()
        .find_map(|pointer| json.pointer(pointer)?.as_str());
    match message {
        Some(message) => message.to_owned(),
        None => String::from_utf8_lossy(body).trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_received_piece_restarts_the_idle_timeout() {
        let limits = TurnLimits {
            deadline: Some(Instant::now() + Duration::from_secs(400)),
            cancel: CancellationToken::new(),
            idle: Duration::from_secs(120),
        };
        for _ in 0..3 {
            let piece = tokio::time::sleep(Duration::from_secs(100));
            assert_eq!(limits.within(piece).await, Ok(()));
        }
        let text = |outcome: Result<(), CallFailure>| outcome.unwrap_err().to_string();
        let silence = std::future::pending::<()>();
        let idle = TurnLimits {
            deadline: None,
            ..limits.clone()
        };
        let expected = "no data was received for 120 seconds";
        assert_eq!(text(idle.within(silence).await), expected);
        let silence = std::future::pending::<()>();
        let expected = "the time limit of the turn passed";
        assert_eq!(text(limits.within(silence).await), expected);
    }
}
