//! Running a shell command for a thread: the port, and its adapters for a kernel sandbox and for the bare host.
//!
//! [`bubblewrap`] is the way for commands that nobody vouches for, [`host`] the one that an administrator has to ask for by name.
//! What an adapter may count on and what it has to keep is written at [`CommandSandbox`] and tried by `testkit::command_sandbox`.

pub mod bubblewrap;
pub mod host;
mod limits;
mod running;
mod spawner;
mod transcript;

use std::fmt;
use std::io;
use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;

use super::fault::Fault;
use super::thread_dirs::ThreadDirs;

pub use limits::CommandLimits;
pub use transcript::Transcript;

/// The longest command in bytes: a little less than what one argument of a program may have.
pub const LONGEST_COMMAND: usize = 120 * 1024;

/// Runs shell commands for threads.
///
/// A command sees the thread's folders and begins in the workspace. It reads nothing from its input. Dropping the future ends it
/// with everything that it started; so does the time limit.
#[async_trait]
pub trait CommandSandbox: fmt::Debug + Send + Sync + 'static {
    /// What stands between a command and this machine.
    fn isolation(&self) -> Isolation;

    /// Runs a command to its end and gives what it prints to `output` as it comes.
    ///
    /// # Errors
    /// When the command could not be started. What becomes of a started one is a [`CommandEnd`].
    async fn run(&self, request: CommandRequest<'_>, output: &mut dyn CommandOutput) -> Result<CommandEnd, CommandError>;
}

/// What stands between a command and the machine it runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Namespaces, a system call filter and limits: it sees the thread's folders and a read-only system.
    Kernel,
    /// Nothing: it may do what this process may.
    None,
}

/// A command of a thread.
#[derive(Debug, Clone, Copy)]
pub struct CommandRequest<'a> {
    /// The thread's folders.
    pub dirs: &'a ThreadDirs,
    /// What the shell reads.
    pub command: &'a str,
    /// How long it may take.
    pub time_limit: Duration,
}

impl CommandRequest<'_> {
    /// Refuses what no program can be given as an argument.
    fn check(&self) -> Result<(), CommandError> {
        match self.command {
            command if command.contains('\0') => Err(CommandError::Unspeakable),
            command if command.len() > LONGEST_COMMAND => Err(CommandError::TooLong { bytes: command.len() }),
            _ => Ok(()),
        }
    }
}

/// Where the bytes that a command prints go.
pub trait CommandOutput: Send {
    /// Takes the next bytes.
    fn take(&mut self, from: Pipe, bytes: &[u8]);
}

/// The two ways on which a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pipe {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandEnd {
    /// By itself, with this code; 128 and the signal's number when a signal ended it.
    Exited(i32),
    /// It took too long.
    TimedOut,
    /// It printed too much.
    TooMuchOutput,
}

/// Why a command was not started.
#[derive(Debug, Error)]
pub enum CommandError {
    /// It has a NUL in it.
    #[error("a command cannot contain a NUL character")]
    Unspeakable,
    /// It is longer than [`LONGEST_COMMAND`].
    #[error("the command has {bytes} bytes, the limit is {LONGEST_COMMAND}; write a script with write_file and run that")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The thread's folders cannot be had.
    #[error("the folders of this conversation cannot be used: {0}")]
    Folders(#[from] Fault),
    /// The sandbox did not start.
    #[error("the sandbox did not start: {0}")]
    Start(#[from] io::Error),
}
