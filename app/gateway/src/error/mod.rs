//! Errors of the API, with their status and body.

mod conversions;
mod issue;
mod sign_in;

pub(crate) use conversions::capitalized;
pub use issue::Issue;
pub(crate) use issue::truncated;
pub use sign_in::SignInFailure;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use harness::ids::RunId;
use harness::json_size::TooLarge;
use harness::quota::QuotaExceeded;
use harness::runtime::agent::InputError;
use harness::runtime::runs::store::KeyState;
use serde_json::{Value, json};

use self::sign_in::KEY_HINT;
use crate::dialect::Dialect;

/// Authentication challenge (RFC 6750) for a request without a key.
const CHALLENGE: &str = "Bearer realm=\"deerflow\"";
/// Authentication challenge for a request with an invalid key.
const INVALID_TOKEN: &str = "Bearer realm=\"deerflow\", error=\"invalid_token\", error_description=\"The API key is not valid\"";

/// Error of a request. The outermost layer renders it in the request's dialect.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// Parts of the request violate the contract.
    #[error("the request is not valid")]
    Invalid(Vec<Issue>),
    /// The body is not valid JSON.
    #[error("invalid JSON in request body: {0}")]
    InvalidJson(String),
    /// A validation error with a text instead of a list of issues.
    #[error("{0}")]
    Unprocessable(String),
    /// The content of the run's assistant is invalid: all findings.
    #[error("the assistant is invalid")]
    InvalidAssistant(Vec<Value>),
    /// The request is well-formed, but cannot be executed.
    #[error("{0}")]
    BadRequest(String),
    /// The route requires a session or an API key, and the request has neither.
    #[error("Authentication required. {KEY_HINT}")]
    MissingKey,
    /// The key is unknown, expired or revoked.
    #[error(
        "Invalid API key. It is unknown, expired or revoked; create a new one with `deerflow keys create` on the server."
    )]
    InvalidKey,
    /// Too many invalid keys.
    #[error("Too many failed attempts")]
    TooManyFailures {
        /// Seconds until the next attempt is allowed.
        retry_after_secs: u64,
    },
    /// Sign-in failed, or the session is not valid.
    #[error(transparent)]
    SignIn(#[from] SignInFailure),
    /// A limit of attempts refuses the request.
    #[error("{message}")]
    Limited {
        /// Text for people.
        message: String,
        /// Seconds until the next attempt is possible.
        retry_after_secs: u64,
    },
    /// The server has no capacity for the request now.
    #[error("{message}")]
    Busy {
        /// Text for people.
        message: String,
        /// Seconds until the next attempt is useful.
        retry_after_secs: u64,
    },
    /// The memory for large request bodies is in use. The body was not read, or not parsed.
    #[error(
        "the memory for large request bodies is in use by other requests. Send the request again later, or in smaller parts"
    )]
    BodiesBusy {
        /// Seconds until the next attempt is useful.
        retry_after_secs: u64,
    },
    /// The action is not allowed, or the feature is disabled.
    #[error("{0}")]
    Forbidden(String),
    /// The body is larger than allowed.
    #[error("request body exceeds {0} bytes")]
    TooLarge(u64),
    /// A field of the body, or a value after a merge, is larger than allowed.
    #[error(transparent)]
    FieldTooLarge(#[from] TooLarge),
    /// The values of the body need more memory than allowed.
    #[error("{0}")]
    TooManyValues(String),
    /// A quota of the user is exceeded.
    #[error("{}: {} used, {} allowed. Delete data or wait for runs to finish.", .0.quota, .0.used, .0.limit)]
    QuotaExceeded(#[from] QuotaExceeded),
    /// A file is larger than allowed.
    #[error("{0}")]
    FileTooLarge(String),
    /// The operation does not support this type of file.
    #[error("{0}")]
    UnsupportedFile(String),
    /// The body is compressed or uses another unsupported encoding.
    #[error("{0}")]
    UnsupportedCoding(String),
    /// The resource changed since the client read it.
    #[error("{0}")]
    Changed(String),
    /// The body did not arrive in time.
    #[error("the request body did not arrive in time")]
    TooSlow,
    /// The route does not exist.
    #[error("Not Found")]
    RouteNotFound,
    /// The route does not support the method.
    #[error("Method Not Allowed")]
    MethodNotAllowed,
    /// Another resource does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The thread does not exist or belongs to another user.
    #[error("Thread {0} not found")]
    ThreadNotFound(String),
    /// The run does not exist or belongs to another thread.
    #[error("Run {0} not found")]
    RunNotFound(String),
    /// The assistant does not exist.
    #[error("Assistant {0} not found")]
    AssistantNotFound(String),
    /// The checkpoint does not exist.
    #[error("Checkpoint {0} not found")]
    CheckpointNotFound(String),
    /// The thread of a new run does not exist.
    #[error("Thread {0} not found")]
    RunTargetNotFound(String),
    /// The thread of a new run is busy.
    #[error("Thread {0} already has an active run")]
    ThreadBusy(String),
    /// The thread has too many queued runs.
    #[error("Too many runs wait on thread {0}. Wait for some of them to finish.")]
    QueueFull(String),
    /// The run to cancel has ended.
    #[error("Run {run_id} is not cancellable (status: {status})")]
    NotCancellable {
        /// Id of the run.
        run_id: RunId,
        /// Current status of the run.
        status: &'static str,
    },
    /// The user has too many unused codes for a chat platform.
    #[error(
        "Too many pending channel connection codes. Wait for existing codes to expire or use one of them."
    )]
    TooManyCodes,
    /// The request conflicts with the current state.
    #[error("{0}")]
    Conflict(String),
    /// The idempotency key is known: `idempotency` replays the response.
    #[error("the idempotency key is already used")]
    KnownRequest(KeyState),
    /// A required component does not respond; a retry may succeed.
    #[error("{0}")]
    Unavailable(String),
    /// The storage accepts no writes.
    #[error("{0}")]
    NotWritable(String),
    /// The thread is deleted, but some of its files remain.
    #[error(
        "Thread {0} is deleted, but some of its files could not be removed. Delete it again, or wait for the next sweep."
    )]
    FilesRemain(String),
    /// This server does not have the feature.
    #[error("{0}")]
    NotSupported(String),
    /// The run of a scheduled task was not created.
    #[error("{0}")]
    TriggerFailed(String),
    /// An identity provider does not answer as it should.
    #[error("{0}")]
    ProviderFailed(String),
    /// Internal error.
    #[error("{0}")]
    Internal(String),
}

impl ApiError {
    /// A validation error with a single issue.
    pub fn issue(issue: Issue) -> Self {
        Self::Invalid(vec![issue])
    }

    /// A value at `location` in the body that the agent does not accept.
    pub(crate) fn of_input(error: InputError, location: &str) -> Self {
        match error {
            InputError::Invalid {
                path,
                reason,
                value,
            } => {
                let parts = location.split('.').map(str::to_owned).chain(path);
                let loc = std::iter::once("body".to_owned()).chain(parts);
                let loc = loc.map(Value::String).collect();
                Self::issue(Issue::new("value_error", loc, reason, &value))
            }
            other => Self::Unprocessable(capitalized(&other.to_string())),
        }
    }

    /// Returns the HTTP status.
    pub fn status(&self, dialect: Dialect) -> StatusCode {
        match self {
            Self::Invalid(_)
            | Self::InvalidAssistant(_)
            | Self::InvalidJson(_)
            | Self::Unprocessable(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::MissingKey | Self::InvalidKey => StatusCode::UNAUTHORIZED,
            Self::SignIn(failure) => failure.status(),
            Self::TooManyFailures { .. } | Self::Limited { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::TooLarge(_)
            | Self::FieldTooLarge(_)
            | Self::TooManyValues(_)
            | Self::FileTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedFile(_) | Self::UnsupportedCoding(_) => {
                StatusCode::UNSUPPORTED_MEDIA_TYPE
            }
            Self::Changed(_) => StatusCode::PRECONDITION_FAILED,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RouteNotFound
            | Self::NotFound(_)
            | Self::ThreadNotFound(_)
            | Self::RunNotFound(_)
            | Self::AssistantNotFound(_)
            | Self::CheckpointNotFound(_)
            | Self::RunTargetNotFound(_) => StatusCode::NOT_FOUND,
            Self::NotCancellable { .. } if dialect.is_platform() => StatusCode::NOT_FOUND,
            Self::ThreadBusy(_)
            | Self::NotCancellable { .. }
            | Self::Conflict(_)
            | Self::KnownRequest(_) => StatusCode::CONFLICT,
            Self::QuotaExceeded(exceeded) if exceeded.quota.is_bytes() => {
                StatusCode::PAYLOAD_TOO_LARGE
            }
            Self::QueueFull(_) | Self::TooManyCodes | Self::QuotaExceeded(_) => {
                StatusCode::TOO_MANY_REQUESTS
            }
            Self::NotSupported(_) => StatusCode::NOT_IMPLEMENTED,
            Self::TriggerFailed(_) | Self::ProviderFailed(_) => StatusCode::BAD_GATEWAY,
            Self::Unavailable(_) | Self::Busy { .. } | Self::BodiesBusy { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::NotWritable(_) => StatusCode::INSUFFICIENT_STORAGE,
            Self::FilesRemain(_) | Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns the `detail` of the response.
    pub(crate) fn detail(&self, dialect: Dialect) -> Value {
        match (self, dialect) {
            (Self::Invalid(issues), Dialect::DeerFlow) => issues.iter().map(Issue::list_item).collect(),
            (Self::Invalid(issues), Dialect::Platform) => issues.first().map(Issue::plain_text).unwrap_or_default().into(),
            (Self::SignIn(failure), Dialect::DeerFlow) => failure.detail(),
            (Self::MissingKey, Dialect::DeerFlow) => {
                let mut detail = SignInFailure::not_authenticated().detail();
                detail["hint"] = KEY_HINT.into();
                detail
            }
            (Self::InvalidAssistant(findings), _) => findings.clone().into(),
            (Self::InvalidJson(why), Dialect::DeerFlow) => {
                json!([{ "type": "json_invalid", "loc": ["body"], "msg": format!("JSON decode error: {why}"), "input": {} }])
            }
            (Self::InvalidJson(why), Dialect::Platform) => format!("Invalid JSON in request body: {why}").into(),
            (Self::ThreadNotFound(id), Dialect::Platform) => format!("Thread with ID {id} not found").into(),
            (Self::RunNotFound(_) | Self::AssistantNotFound(_), Dialect::Platform) => "Not Found".into(),
            (Self::RunTargetNotFound(_), Dialect::Platform) => "Thread or assistant not found.".into(),
            (Self::ThreadBusy(_), Dialect::Platform) => {
                "Thread is already running a task. Wait for it to finish or choose a different multitask strategy.".into()
            }
            (Self::NotCancellable { .. }, Dialect::Platform) => {
                "No matching runs to cancel. Please verify the thread ID and run IDs are correct, and the runs haven't been deleted or \
                 completed."
                    .into()
            }
            // Internal details are logged, not sent to clients.
            (Self::Internal(_), _) => "Internal Server Error".into(),
            (other, _) => other.to_string().into(),
        }
    }

    /// Renders the response. Server errors are logged here and nowhere else.
    pub fn render(&self, dialect: Dialect) -> Response {
        let status = self.status(dialect);
        // An absent feature is no failure of the server.
        if status.is_server_error() && !matches!(self, Self::NotSupported(_)) {
            tracing::error!(status = status.as_u16(), error = %self, "request failed");
        }
        let mut body = json!({ "detail": self.detail(dialect) });
        if let Self::QuotaExceeded(exceeded) = self {
            body["quota"] = exceeded.quota.as_str().into();
            body["used"] = exceeded.used.into();
            body["limit"] = exceeded.limit.into();
        }
        let mut response = (status, axum::Json(body)).into_response();
        if let Some((name, value)) = self.header() {
            response.headers_mut().insert(name, value);
        }
        if self.leaves_body_unread() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        response
    }

    /// Reports whether an unread part of the body is still on the connection, so that it cannot
    /// carry another request.
    fn leaves_body_unread(&self) -> bool {
        matches!(
            self,
            Self::TooLarge(_) | Self::TooSlow | Self::BodiesBusy { .. }
        )
    }

    /// Returns the additional header of the error's response: a delay for retries, an
    /// authentication challenge, or the accepted coding.
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        Some(match self {
            Self::TooManyFailures { retry_after_secs }
            | Self::Limited {
                retry_after_secs, ..
            }
            | Self::Busy {
                retry_after_secs, ..
            }
            | Self::BodiesBusy { retry_after_secs } => {
                (header::RETRY_AFTER, (*retry_after_secs).into())
            }
            Self::Unavailable(_) => (header::RETRY_AFTER, 1.into()),
            Self::MissingKey => (
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static(CHALLENGE),
            ),
            Self::InvalidKey => (
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static(INVALID_TOKEN),
            ),
            Self::UnsupportedCoding(_) => (
                header::ACCEPT_ENCODING,
                HeaderValue::from_static("identity"),
            ),
            _ => return None,
        })
    }
}

/// A bare response that carries the error; the outermost layer replaces it with
/// [`ApiError::render`].
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status(Dialect::DeerFlow).into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
