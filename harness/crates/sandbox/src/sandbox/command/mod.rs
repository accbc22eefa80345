//! Runs shell commands of a thread: the port, and its adapters for a kernel sandbox, for containers
//! and for the bare host.
//!
//! [`bubblewrap`] is meant for untrusted commands, `container` for deployments with a container
//! engine or a cluster; [`host`] must be enabled explicitly by an administrator. The contract of an
//! adapter is documented at [`CommandSandbox`] and tested by `testkit::command_sandbox`.

#[cfg(target_os = "linux")]
pub mod bubblewrap;
#[cfg(feature = "containers")]
pub mod container;
pub mod host;
mod limited;
mod limits;
mod redaction;
mod running;
#[cfg(target_os = "linux")]
mod spawner;
mod transcript;

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;

use super::file_error::FileFailure;
use super::skill_mounts::SkillMounts;
use super::thread_dirs::ThreadDirs;

pub use super::mounts::Mount;
pub use limited::LimitedCommandSandbox;
pub use limits::CommandLimits;
pub use redaction::{Redacting, Secrets};
#[cfg(feature = "child-process")]
pub(crate) use running::{Descendants, kill_tree, wait_exited};
pub use transcript::Transcript;

/// Maximum length of a command in bytes: slightly less than the kernel's limit for one program
/// argument.
pub const MAX_COMMAND_BYTES: usize = 120 * 1024;

/// Runs shell commands for threads.
///
/// A command sees the thread's folders and skills, and starts in the workspace. Its standard input
/// is empty. When the future is dropped or the time limit expires, the command is killed with all
/// processes that it started.
///
/// ```
/// use async_trait::async_trait;
/// use deerflow_sandbox::sandbox::command::{
///     CommandEnd, CommandError, CommandOutput, CommandRequest, CommandSandbox, Isolation, Pipe,
/// };
///
/// /// Sandbox that prints each command instead of running it.
/// #[derive(Debug)]
/// struct DryRun;
///
/// #[async_trait]
/// impl CommandSandbox for DryRun {
///     fn isolation(&self) -> Isolation {
///         Isolation::Kernel
///     }
///
///     async fn run(
///         &self,
///         request: CommandRequest<'_>,
///         output: &mut dyn CommandOutput,
///     ) -> Result<CommandEnd, CommandError> {
///         output.take(Pipe::Out, request.command.as_bytes());
///         Ok(CommandEnd::Exited(0))
///     }
/// }
/// ```
#[async_trait]
pub trait CommandSandbox: fmt::Debug + Send + Sync + 'static {
    /// Isolation between a command and this machine.
    fn isolation(&self) -> Isolation;

    /// `true` if output is delivered while the command runs, so that viewers can follow it; `false`
    /// if it is delivered at the end only.
    fn prints_live(&self) -> bool {
        true
    }

    /// Networks that a command can reach.
    fn reach(&self) -> Reach {
        Reach::Everything
    }

    /// Runs a command to its end and passes its output to `output` as it arrives.
    ///
    /// # Errors
    /// If the command could not be started, or its end is unknown. Every known end is a
    /// [`CommandEnd`].
    async fn run(
        &self,
        request: CommandRequest<'_>,
        output: &mut dyn CommandOutput,
    ) -> Result<CommandEnd, CommandError>;
}

/// Isolation between a command and the machine that it runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Namespaces, a system call filter and resource limits: the command sees the thread's folders
    /// and a read-only system.
    Kernel,
    /// A container per thread, with network access.
    Container,
    /// No isolation: the command has the rights of this process.
    None,
}

/// Networks that a command can reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// No network.
    Nothing,
    /// The listed hosts, through a proxy set in the usual environment variables.
    Proxied(String),
    /// All networks that the machine or the container can reach.
    Everything,
}

/// A command of a thread.
#[derive(Debug, Clone, Copy)]
pub struct CommandRequest<'a> {
    /// Folders of the thread.
    pub dirs: &'a ThreadDirs,
    /// Mounted skills that the command can read.
    pub shelf: &'a SkillMounts,
    /// Shell command.
    pub command: &'a str,
    /// Time limit.
    pub time_limit: Duration,
}

impl CommandRequest<'_> {
    /// Rejects a command that cannot be passed as a program argument.
    fn check(&self) -> Result<(), CommandError> {
        match self.command {
            command if command.contains('\0') => Err(CommandError::Unspeakable),
            command if command.len() > MAX_COMMAND_BYTES => Err(CommandError::TooLong {
                bytes: command.len(),
            }),
            _ => Ok(()),
        }
    }
}

/// Receiver of a command's output.
///
/// ```
/// use deerflow_sandbox::sandbox::command::{CommandOutput, Pipe};
///
/// /// Collects standard output and drops standard error.
/// #[derive(Default)]
/// struct Output(Vec<u8>);
///
/// impl CommandOutput for Output {
///     fn take(&mut self, from: Pipe, bytes: &[u8]) {
///         if from == Pipe::Out {
///             self.0.extend_from_slice(bytes);
///         }
///     }
/// }
///
/// let mut output = Output::default();
/// output.take(Pipe::Out, b"done");
/// output.take(Pipe::Err, b"warning");
/// assert_eq!(output.0, b"done");
/// ```
pub trait CommandOutput: Send {
    /// Receives the next bytes.
    fn take(&mut self, from: Pipe, bytes: &[u8]);
}

/// Output stream of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pipe {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// End of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandEnd {
    /// It exited with this code; 128 plus the signal number if a signal killed it.
    Exited(i32),
    /// It exceeded its time limit.
    TimedOut,
    /// It exceeded its output limit.
    TooMuchOutput,
}

/// Reason why a command was not started, or why its end is unknown.
#[derive(Debug, Error)]
pub enum CommandError {
    /// It contains a NUL character.
    #[error("a command cannot contain a NUL character")]
    Unspeakable,
    /// It is longer than [`MAX_COMMAND_BYTES`].
    #[error(
        "the command has {bytes} bytes, the limit is {MAX_COMMAND_BYTES}; write a script with write_file and run that"
    )]
    TooLong {
        /// Length in bytes.
        bytes: usize,
    },
    /// Too many commands are running.
    #[error(
        "too many commands run at the moment, and none ended within {seconds} seconds; try again later"
    )]
    Busy {
        /// Time spent waiting for a permit.
        seconds: u64,
    },
    /// The thread's folders cannot be opened.
    #[error("the folders of this conversation cannot be used: {0}")]
    Folders(#[from] FileFailure),
    /// The sandbox did not start.
    #[error("the sandbox did not start: {0}")]
    Start(#[from] io::Error),
    /// No sandbox is available.
    #[error("there is no sandbox for the command: {0}")]
    NoPlace(#[source] Box<dyn Error + Send + Sync>),
    /// The sandbox was lost while the command ran; the command was killed as far as possible.
    #[error("the sandbox was lost while the command ran, and its effects are unknown: {0}")]
    Lost(#[source] Box<dyn Error + Send + Sync>),
}

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::sandbox::command::MAX_COMMAND_BYTES as LONGEST_COMMAND;
