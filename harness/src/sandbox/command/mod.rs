//! Running a shell command for a thread: the port, and its adapters for a kernel sandbox, for containers and for the bare host.
//!
//! [`bubblewrap`] is the way for commands that nobody vouches for, `container` the one for whoever has an engine or a cluster for them,
//! and [`host`] the one that an administrator has to ask for by name.
//! What an adapter may count on and what it has to keep is written at [`CommandSandbox`] and tried by `testkit::command_sandbox`.

pub mod bubblewrap;
#[cfg(feature = "containers")]
pub mod container;
pub mod host;
mod limited;
mod limits;
mod redaction;
mod running;
mod spawner;
mod transcript;

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;

use super::fault::Fault;
use super::shelf::Shelf;
use super::thread_dirs::ThreadDirs;

pub use super::mounts::Mount;
pub use limited::LimitedCommandSandbox;
pub use limits::CommandLimits;
pub use redaction::{Redacting, Secrets};
#[cfg(feature = "mcp")]
pub(crate) use running::{Below, ended, kill_tree};
pub use transcript::Transcript;

/// The longest command in bytes: a little less than what one argument of a program may have.
pub const LONGEST_COMMAND: usize = 120 * 1024;

/// Runs shell commands for threads.
///
/// A command sees the thread's folders and skills, and begins in the workspace. It reads nothing from its input. Dropping the future ends it
/// with everything that it started; so does the time limit.
#[async_trait]
pub trait CommandSandbox: fmt::Debug + Send + Sync + 'static {
    /// What stands between a command and this machine.
    fn isolation(&self) -> Isolation;

    /// Whether it gives what a command prints while the command runs, and not at its end alone: viewers are told then.
    fn prints_live(&self) -> bool {
        true
    }

    /// What a command reaches of networks.
    fn reach(&self) -> Reach {
        Reach::Everything
    }

    /// Runs a command to its end and gives what it prints to `output` as it comes.
    ///
    /// # Errors
    /// When the command could not be started, or nobody knows how it ended. What becomes of one otherwise is a [`CommandEnd`].
    async fn run(
        &self,
        request: CommandRequest<'_>,
        output: &mut dyn CommandOutput,
    ) -> Result<CommandEnd, CommandError>;
}

/// What stands between a command and the machine it runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Namespaces, a system call filter and limits: it sees the thread's folders and a read-only system.
    Kernel,
    /// A container of the thread's own, with a network.
    Container,
    /// Nothing: it may do what this process may.
    None,
}

/// What a command reaches of networks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// Nothing.
    Nothing,
    /// These hosts, through a proxy that the usual variables name.
    Proxied(String),
    /// Whatever the machine or the container reaches.
    Everything,
}

/// A command of a thread.
#[derive(Debug, Clone, Copy)]
pub struct CommandRequest<'a> {
    /// The thread's folders.
    pub dirs: &'a ThreadDirs,
    /// What it reads besides.
    pub shelf: &'a Shelf,
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
            command if command.len() > LONGEST_COMMAND => Err(CommandError::TooLong {
                bytes: command.len(),
            }),
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

/// Why a command was not started, or what became of it is not known.
#[derive(Debug, Error)]
pub enum CommandError {
    /// It has a NUL in it.
    #[error("a command cannot contain a NUL character")]
    Unspeakable,
    /// It is longer than [`LONGEST_COMMAND`].
    #[error(
        "the command has {bytes} bytes, the limit is {LONGEST_COMMAND}; write a script with write_file and run that"
    )]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Too many run already.
    #[error(
        "too many commands run at the moment, and none ended within {seconds} seconds; try again later"
    )]
    Busy {
        /// How long a place was waited for.
        seconds: u64,
    },
    /// The thread's folders cannot be had.
    #[error("the folders of this conversation cannot be used: {0}")]
    Folders(#[from] Fault),
    /// The sandbox did not start.
    #[error("the sandbox did not start: {0}")]
    Start(#[from] io::Error),
    /// Where it should run is not to be had.
    #[error("there is no sandbox for the command: {0}")]
    NoPlace(#[source] Box<dyn Error + Send + Sync>),
    /// Where it ran was lost, and it was ended as far as that could be done.
    #[error("the sandbox was lost while the command ran, and what it has done is not known: {0}")]
    Lost(#[source] Box<dyn Error + Send + Sync>),
}
