//! Why a client does not do what it is asked for.

use std::io;
use std::path::PathBuf;

use super::event::Question;
use crate::artifacts::ArtifactError;
use crate::config::Violation;
#[cfg(feature = "mcp")]
use crate::mcp::McpUnavailable;
#[cfg(feature = "mcp")]
use crate::mcp::settings::{McpPortError, ServerIssue};
use crate::memory::{ImportIssue, MemoryError};
use crate::middlewares::goal::GoalError;
use crate::runtime::memory::InvalidOption;
use crate::runtime::runs::RunError;
use crate::runtime::threads::ThreadError;
use crate::skills::SkillError;
use crate::uploads::UploadError;

/// Why a question was not answered, or something else not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The run was not made, or cannot be followed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The run failed.
    #[error("{name}: {message}")]
    Failed {
        /// What kind of failure.
        name: String,
        /// What it says of itself.
        message: String,
    },
    /// The run waits for a person; [`Client::resume`](super::Client::resume) goes on with it.
    #[error("the run waits for the answers to {} questions", .questions.len())]
    Asked {
        /// The text of the last message so far.
        said: String,
        /// What is asked.
        questions: Vec<Question>,
    },
    /// Somebody cancelled the run.
    #[error("the run was cancelled")]
    Cancelled {
        /// The text of the last message so far.
        said: String,
    },
    /// Events were lost before they could be read; the thread has what the run came to.
    #[error("some events of the run are gone; its thread has the rest")]
    Gap,
    /// The runtime ends, and the run goes on at its next start.
    #[error("the runtime is shutting down")]
    ShuttingDown,
    /// The client was not given this part of an installation.
    #[error("this client was given no {0}")]
    Absent(&'static str),
    /// There is no such file on the host.
    #[error("file not found: {}", .0.display())]
    NotFound(PathBuf),
    /// A directory is there, or a pipe.
    #[error("not a file: {}", .0.display())]
    NotAFile(PathBuf),
    /// The host's file cannot be read.
    #[error("{} cannot be read: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Something about skills.
    #[error(transparent)]
    Skill(#[from] SkillError),
    /// Something about what is remembered.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The memory to be imported is beyond limits.
    #[error("the memory cannot be imported: {}", joined(.0))]
    Import(Vec<ImportIssue>),
    /// The fields of a fact are beyond limits.
    #[error("the fact cannot be kept: {}", joined(.0))]
    Fact(Vec<ImportIssue>),
    /// Something about uploads.
    #[error(transparent)]
    Upload(#[from] UploadError),
    /// Something about artifacts.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// Something about threads.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// Something about goals.
    #[error(transparent)]
    Goal(#[from] GoalError),
    /// The servers could not be read or changed.
    #[cfg(feature = "mcp")]
    #[error(transparent)]
    Mcp(#[from] McpPortError),
    /// Fields of servers hold something else.
    #[cfg(feature = "mcp")]
    #[error("the servers cannot be used: {}", joined(.0))]
    McpServers(Vec<ServerIssue>),
    /// The servers' tools cannot be had.
    #[cfg(feature = "mcp")]
    #[error(transparent)]
    McpUnavailable(#[from] McpUnavailable),
    /// The runtime could not be put together.
    #[error(transparent)]
    Runtime(#[from] InvalidOption),
    /// Values of the configuration are out of their bounds.
    #[error("the configuration cannot be used: {}", joined(.0))]
    Config(Vec<Violation>),
}

fn joined(issues: &[impl ToString]) -> String {
    issues
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}
