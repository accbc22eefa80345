//! Conversions from errors of the kernel and of the stores.

use harness::agents::custom::CustomAgentError;
use harness::runtime::agent::UnknownAssistant;
use harness::runtime::checkpoint::CheckpointError;
use harness::runtime::runs::RunError;
use harness::runtime::runs::store::{AdmitError, StoreError};
use harness::runtime::stream_bridge::BridgeError;
use harness::runtime::threads::ThreadError;
use harness::sandbox::{FileError, FileFailure};
use harness::skills::SkillError;
use harness::skills::archive::ArchiveError;

use super::ApiError;

/// Capitalises the first letter of a text.
pub(crate) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + chars.as_str())
        .unwrap_or_default()
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => Self::Unavailable(error.to_string()),
            StoreError::NotWritable(_) => Self::NotWritable(error.to_string()),
            StoreError::TooLarge(refused) => Self::FieldTooLarge(refused),
            StoreError::QuotaExceeded(exceeded) => Self::QuotaExceeded(exceeded),
            _ => Self::Internal(error.to_string()),
        }
    }
}

/// For disk failures; the routes handle invalid paths themselves.
impl From<FileError> for ApiError {
    fn from(error: FileError) -> Self {
        match error.fault() {
            Some(FileFailure::Busy | FileFailure::Crowded) => Self::Unavailable(error.to_string()),
            Some(FileFailure::NoSpace | FileFailure::ReadOnly) => {
                Self::NotWritable(error.to_string())
            }
            _ => Self::Internal(error.to_string()),
        }
    }
}

impl From<SkillError> for ApiError {
    fn from(error: SkillError) -> Self {
        let text = capitalized(&error.to_string());
        match error {
            SkillError::NotFound(_) => Self::NotFound(text),
            SkillError::Exists(_) => Self::Conflict(text),
            SkillError::Archive(ArchiveError::Disk(fault)) | SkillError::Disk(fault) => match fault
            {
                FileFailure::NoSpace | FileFailure::ReadOnly => Self::NotWritable(text),
                FileFailure::Busy | FileFailure::Crowded => Self::Unavailable(text),
                _ => Self::Internal(text),
            },
            SkillError::Frontmatter(_) | SkillError::Archive(_) | SkillError::Refused(_) => {
                Self::BadRequest(text)
            }
            _ => Self::Internal(text),
        }
    }
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
            UnknownAssistant::Invalid { findings, .. } => Self::InvalidAssistant(findings),
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
            RunError::Admit(AdmitError::QuotaExceeded(exceeded)) => Self::QuotaExceeded(exceeded),
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
