//! Errors of the embedded client.

use std::io;
use std::path::PathBuf;

use super::event::Question;
use crate::artifacts::ArtifactError;
use crate::config::Violation;
#[cfg(feature = "mcp")]
use crate::mcp::McpUnavailable;
#[cfg(feature = "mcp")]
use crate::mcp::settings::{McpPortError, ServerIssue};
use crate::middlewares::goal::GoalError;
use crate::quota::QuotaExceeded;
use crate::runtime::in_memory::InvalidOption;
use crate::runtime::runs::RunError;
use crate::runtime::threads::ThreadError;
use crate::skills::SkillError;
use crate::uploads::UploadError;
use crate::user_memory::{ImportIssue, MemoryError};

/// Failure of a client method.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The run cannot be created, or its stream cannot be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The run ended with an error.
    #[error("{name}: {message}")]
    Failed {
        /// Name of the error.
        name: String,
        /// Message of the error.
        message: String,
    },
    /// The run waits for answers of the user; [`Client::resume`](super::Client::resume) continues
    /// it.
    #[error("the run waits for {} answers of the user", .questions.len())]
    Asked {
        /// Text of the last message so far.
        said: String,
        /// Open interrupts.
        questions: Vec<Question>,
    },
    /// The run was cancelled.
    #[error("the run was cancelled")]
    Cancelled {
        /// Text of the last message so far.
        said: String,
    },
    /// Events were lost before they were read; the thread contains the result of the run.
    #[error("events of the run were lost; read its result from the thread")]
    Gap,
    /// The stream ended before its run, for example because the reader was too slow, another process
    /// continues the run, or the runtime shuts down. [`Client::join`](super::Client::join) follows the
    /// run again.
    #[error("the stream ended before the run; join the run again")]
    StreamEnded,
    /// This part of the installation was not set for the client.
    #[error("this client was built without {0}")]
    Absent(&'static str),
    /// There is no such file on the host.
    #[error("file not found: {}", .0.display())]
    NotFound(PathBuf),
    /// The path is not a regular file, for example a directory or a pipe.
    #[error("not a file: {}", .0.display())]
    NotAFile(PathBuf),
    /// The host file cannot be read.
    #[error("{} cannot be read: {source}", .path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Failure of a skill operation.
    #[error(transparent)]
    Skill(#[from] SkillError),
    /// Failure of a memory operation.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The imported memory exceeds limits.
    #[error("the memory cannot be imported: {}", joined(.0))]
    Import(Vec<ImportIssue>),
    /// The fields of a fact exceed limits.
    #[error("the fact cannot be stored: {}", joined(.0))]
    Fact(Vec<ImportIssue>),
    /// A quota of the user is exceeded.
    #[error(transparent)]
    Quota(#[from] QuotaExceeded),
    /// Failure of an upload operation.
    #[error(transparent)]
    Upload(#[from] UploadError),
    /// Failure of an artifact operation.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// Failure of a thread operation.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// Failure of a goal operation.
    #[error(transparent)]
    Goal(#[from] GoalError),
    /// The MCP servers cannot be read or changed.
    #[cfg(feature = "mcp")]
    #[error(transparent)]
    Mcp(#[from] McpPortError),
    /// Fields of MCP servers are invalid.
    #[cfg(feature = "mcp")]
    #[error("the MCP servers are invalid: {}", joined(.0))]
    McpServers(Vec<ServerIssue>),
    /// MCP tools are unavailable.
    #[cfg(feature = "mcp")]
    #[error(transparent)]
    McpUnavailable(#[from] McpUnavailable),
    /// The runtime cannot be built.
    #[error(transparent)]
    Runtime(#[from] InvalidOption),
    /// Values of the configuration are out of range.
    #[error("the configuration is invalid: {}", joined(.0))]
    Config(Vec<Violation>),
}

fn joined(issues: &[impl ToString]) -> String {
    issues
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}
