//! Everything a request can fail with, turned into status and body once.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use harness::agents::custom::CustomAgentError;
use harness::ids::RunId;
use harness::runtime::agent::UnknownAssistant;
use harness::runtime::checkpoint::CheckpointError;
use harness::runtime::runs::RunError;
use harness::runtime::runs::store::{AdmitError, Known, StoreError};
use harness::runtime::stream_bridge::BridgeError;
use harness::runtime::threads::ThreadError;
use harness::sandbox::{Fault, FileError};
use harness::skills::SkillError;
use harness::skills::archive::ArchiveError;
use serde_json::{Value, json};

use crate::dialect::Dialect;

/// One thing that is wrong with a request's body, query, path or header.
#[derive(Debug, Clone, PartialEq)]
pub struct Issue {
    /// A word clients may test, such as `missing` or `literal_error`.
    pub kind: &'static str,
    /// Where: `body`, `query`, `path` or `header`, then keys and indices.
    pub loc: Vec<Value>,
    /// The rule that was broken, for people.
    pub msg: String,
    /// What came.
    pub input: Value,
    /// The rule's parameters.
    pub ctx: Option<Value>,
}

/// The authentication challenge (RFC 6750) for a request without a key.
const CHALLENGE: &str = "Bearer realm=\"deerflow\"";
/// The same for a request whose key is not valid.
const INVALID_TOKEN: &str = "Bearer realm=\"deerflow\", error=\"invalid_token\", error_description=\"The API key is not valid\"";

/// The most of a refused value that is sent back.
const INPUT_ECHO_LIMIT: usize = 2_000;

impl Issue {
    /// An issue with the value that caused it.
    pub fn new(kind: &'static str, loc: Vec<Value>, msg: impl Into<String>, input: &Value) -> Self {
        let text = input.to_string();
        let input = if text.len() > INPUT_ECHO_LIMIT {
            Value::String(text.chars().take(200).chain("...".chars()).collect())
        } else {
            input.clone()
        };
        Self {
            kind,
            loc,
            msg: msg.into(),
            input,
            ctx: None,
        }
    }

    /// The same issue with the rule's parameters.
    #[must_use]
    pub fn ctx(mut self, ctx: Value) -> Self {
        self.ctx = Some(ctx);
        self
    }

    fn list_item(&self) -> Value {
        let mut item =
            json!({ "type": self.kind, "loc": self.loc, "msg": self.msg, "input": self.input });
        if let (Some(ctx), Some(fields)) = (&self.ctx, item.as_object_mut()) {
            fields.insert("ctx".to_owned(), ctx.clone());
        }
        item
    }

    fn sentence(&self) -> String {
        let place: String = self
            .loc
            .iter()
            .skip(1)
            .map(|part| format!("[{part}]"))
            .collect();
        let source = self.loc.first().and_then(Value::as_str).unwrap_or("body");
        format!(
            "{}: {}\n\nOn {source}{place}:\n    {}",
            self.kind, self.msg, self.input
        )
    }
}

/// Why a request got no success. Rendered per dialect by the outermost layer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The request's parts do not fit together with the contract.
    #[error("the request is not valid")]
    Invalid(Vec<Issue>),
    /// The body is no JSON that we read.
    #[error("invalid JSON in request body: {0}")]
    InvalidJson(String),
    /// The same as [`ApiError::Invalid`] with a text of its own.
    #[error("{0}")]
    Unprocessable(String),
    /// Understood, and refused.
    #[error("{0}")]
    BadRequest(String),
    /// The route needs a key and the request has none.
    #[error(
        "Missing API key. `deerflow keys create` on the server makes one; send it as `x-api-key: KEY` or `Authorization: Bearer KEY`."
    )]
    MissingKey,
    /// The key is unknown, expired or revoked.
    #[error(
        "Invalid API key. It is unknown, expired or revoked; `deerflow keys create` on the server makes a new one."
    )]
    InvalidKey,
    /// Too many wrong keys.
    #[error("Too many failed attempts")]
    TooManyFailures {
        /// When to come back.
        retry_after_secs: u64,
    },
    /// Switched off.
    #[error("{0}")]
    Forbidden(String),
    /// The body is larger than allowed.
    #[error("request body exceeds {0} bytes")]
    TooLarge(u64),
    /// A file is larger than allowed.
    #[error("{0}")]
    FileTooLarge(String),
    /// A kind of file that this cannot be done with.
    #[error("{0}")]
    UnsupportedFile(String),
    /// The body is compressed, or encoded in another way that the server does not undo.
    #[error("{0}")]
    UnsupportedCoding(String),
    /// It is not any more what the client thinks it is.
    #[error("{0}")]
    Changed(String),
    /// The body did not arrive in time.
    #[error("the request body did not arrive in time")]
    TooSlow,
    /// No such route.
    #[error("Not Found")]
    RouteNotFound,
    /// The route has no such method.
    #[error("Method Not Allowed")]
    MethodNotAllowed,
    /// Anything else that does not exist.
    #[error("{0}")]
    NotFound(String),
    /// No such thread, or somebody else's.
    #[error("Thread {0} not found")]
    ThreadNotFound(String),
    /// No such run, or on another thread.
    #[error("Run {0} not found")]
    RunNotFound(String),
    /// No such assistant.
    #[error("Assistant {0} not found")]
    AssistantNotFound(String),
    /// No such checkpoint.
    #[error("Checkpoint {0} not found")]
    CheckpointNotFound(String),
    /// A run is to be created on a thread that does not exist.
    #[error("Thread {0} not found")]
    RunTargetNotFound(String),
    /// A run is to be created on a busy thread.
    #[error("Thread {0} already has an active run")]
    ThreadBusy(String),
    /// Too many runs wait on the thread.
    #[error("Too many runs wait on thread {0}. Wait for some of them to finish.")]
    QueueFull(String),
    /// A run that is over was to be cancelled.
    #[error("Run {run_id} is not cancellable (status: {status})")]
    NotCancellable {
        /// The run.
        run_id: RunId,
        /// Where it is in its life.
        status: &'static str,
    },
    /// It does not go together with what is there.
    #[error("{0}")]
    Conflict(String),
    /// The request came before: `repeats` answers with what it made.
    #[error("a request of this key came before")]
    KnownRequest(Known),
    /// A part we need does not answer; a later try may succeed.
    #[error("{0}")]
    Unavailable(String),
    /// Nothing can be written any more.
    #[error("{0}")]
    NotWritable(String),
    /// A thread is deleted, but for its files.
    #[error(
        "Thread {0} is deleted, but some of its files could not be removed. Delete it again, or wait for the next sweep."
    )]
    FilesLeft(String),
    /// Our fault.
    #[error("{0}")]
    Internal(String),
}

impl ApiError {
    /// A single issue.
    pub fn issue(issue: Issue) -> Self {
        Self::Invalid(vec![issue])
    }

    /// The status of the answer.
    pub fn status(&self, dialect: Dialect) -> StatusCode {
        match self {
            Self::Invalid(_) | Self::InvalidJson(_) | Self::Unprocessable(_) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::MissingKey | Self::InvalidKey => StatusCode::UNAUTHORIZED,
            Self::TooManyFailures { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::TooLarge(_) | Self::FileTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
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
            Self::QueueFull(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::NotWritable(_) => StatusCode::INSUFFICIENT_STORAGE,
            Self::FilesLeft(_) | Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The `detail` of the answer.
    fn detail(&self, dialect: Dialect) -> Value {
        match (self, dialect) {
            (Self::Invalid(issues), Dialect::DeerFlow) => issues.iter().map(Issue::list_item).collect(),
            (Self::Invalid(issues), Dialect::Platform) => issues.first().map(Issue::sentence).unwrap_or_default().into(),
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
            // What went wrong inside is for the log, not for clients.
            (Self::Internal(_), _) => "Internal Server Error".into(),
            (other, _) => other.to_string().into(),
        }
    }

    /// The answer. Failures of ours are logged here and nowhere else.
    pub fn render(&self, dialect: Dialect) -> Response {
        let status = self.status(dialect);
        if status.is_server_error() {
            tracing::error!(status = status.as_u16(), error = %self, "request failed");
        }
        let mut response = (
            status,
            axum::Json(json!({ "detail": self.detail(dialect) })),
        )
            .into_response();
        if let Some((name, value)) = self.header() {
            response.headers_mut().insert(name, value);
        }
        response
    }

    /// Returns the header that names the client's next step after the failure.
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        Some(match self {
            Self::TooManyFailures { retry_after_secs } => {
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
            // The rest of the body is not read, so the connection cannot carry another request.
            Self::TooLarge(_) | Self::TooSlow => {
                (header::CONNECTION, HeaderValue::from_static("close"))
            }
            _ => return None,
        })
    }
}

/// A bare response that carries its cause; the dialect's layer replaces it with [`ApiError::render`].
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status(Dialect::DeerFlow).into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => Self::Unavailable(error.to_string()),
            StoreError::NotWritable(_) => Self::NotWritable(error.to_string()),
            _ => Self::Internal(error.to_string()),
        }
    }
}

/// For failures of the disk; what a path may be is for the routes to say.
impl From<FileError> for ApiError {
    fn from(error: FileError) -> Self {
        match error.fault() {
            Some(Fault::Busy | Fault::Crowded) => Self::Unavailable(error.to_string()),
            Some(Fault::NoSpace | Fault::ReadOnly) => Self::NotWritable(error.to_string()),
            _ => Self::Internal(error.to_string()),
        }
    }
}

impl From<SkillError> for ApiError {
    fn from(error: SkillError) -> Self {
        let text = sentence(&error.to_string());
        match error {
            SkillError::NotFound(_) => Self::NotFound(text),
            SkillError::Exists(_) => Self::Conflict(text),
            SkillError::Archive(ArchiveError::Disk(fault)) | SkillError::Disk(fault) => match fault
            {
                Fault::NoSpace | Fault::ReadOnly => Self::NotWritable(text),
                Fault::Busy | Fault::Crowded => Self::Unavailable(text),
                _ => Self::Internal(text),
            },
            SkillError::Frontmatter(_) | SkillError::Archive(_) | SkillError::Refused(_) => {
                Self::BadRequest(text)
            }
            _ => Self::Internal(text),
        }
    }
}

/// The text with a capital letter, as people read it.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
        .unwrap_or_default()
}

impl From<CheckpointError> for ApiError {
    fn from(error: CheckpointError) -> Self {
        match error {
            CheckpointError::Store(error) => error.into(),
            CheckpointError::StorageFull => Self::NotWritable(error.to_string()),
            _ => Self::Internal(error.to_string()),
        }
    }
}

impl From<ThreadError> for ApiError {
    fn from(error: ThreadError) -> Self {
        match error {
            ThreadError::Taken(thread) => {
                Self::Conflict(format!("Thread with ID {thread} already exists"))
            }
            ThreadError::Store(error) => error.into(),
            ThreadError::Checkpoint(error) => error.into(),
            other => Self::Internal(other.to_string()),
        }
    }
}

impl From<UnknownAssistant> for ApiError {
    fn from(error: UnknownAssistant) -> Self {
        match error {
            UnknownAssistant::NotFound(name) => Self::AssistantNotFound(name),
            UnknownAssistant::UnknownModel(name) => Self::BadRequest(format!(
                "Model '{name}' is not in the configured model allowlist"
            )),
            UnknownAssistant::InvalidName(_) => Self::Unprocessable(error.to_string()),
            UnknownAssistant::Unusable { .. } => Self::BadRequest(error.to_string()),
            _ => Self::Internal(error.to_string()),
        }
    }
}

impl From<CustomAgentError> for ApiError {
    fn from(error: CustomAgentError) -> Self {
        match error {
            CustomAgentError::TooLarge { .. } => Self::Unprocessable(error.to_string()),
            CustomAgentError::TooMany(_)
            | CustomAgentError::Contended(_)
            | CustomAgentError::Unreadable { .. } => Self::Conflict(error.to_string()),
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

impl From<RunError> for ApiError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Admit(AdmitError::ThreadBusy { thread_id, .. }) => {
                Self::ThreadBusy(thread_id.to_string())
            }
            RunError::Admit(AdmitError::ThreadNotFound(thread)) => {
                Self::RunTargetNotFound(thread.to_string())
            }
            RunError::Admit(AdmitError::RunExists(run)) => {
                Self::Conflict(format!("Run {run} already exists"))
            }
            RunError::Admit(AdmitError::Store(error)) | RunError::Store(error) => error.into(),
            RunError::Assistant(error) => error.into(),
            RunError::NotFound(run) => Self::RunNotFound(run.to_string()),
            RunError::NotCancellable { run_id, status } => Self::NotCancellable {
                run_id,
                status: status.wire(),
            },
            RunError::CheckpointNotFound(id) => Self::CheckpointNotFound(id.to_string()),
            RunError::StillActive(run) => Self::Conflict(format!(
                "Run {run} is still active. Cancel it before deleting it."
            )),
            error @ (RunError::TooManyMessages { .. } | RunError::State(_)) => {
                Self::Unprocessable(format!("input.messages: {error}"))
            }
            RunError::Admit(AdmitError::KnownRequest(known)) => Self::KnownRequest(known),
            RunError::Admit(AdmitError::QueueFull(thread)) => Self::QueueFull(thread.to_string()),
            RunError::Checkpoint(error) => error.into(),
            RunError::ShuttingDown | RunError::Bridge(BridgeError::Closed) => {
                Self::Unavailable("the server is shutting down".to_owned())
            }
            RunError::Bridge(BridgeError::Transport(why)) => {
                Self::Unavailable(format!("the stream transport failed: {why}"))
            }
            other => Self::Internal(other.to_string()),
        }
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
