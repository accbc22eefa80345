//! Command line.

mod channels;
mod db;
mod file_args;
mod flow;
mod users;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use harness::ids::ThreadId;
use harness::runtime::runs::RunStatus;

pub use channels::{ChannelsCommand, InboxStateArg, OutgoingStateArg, RowArgs};
pub use db::DbCommand;
pub use file_args::FileArgs;
pub use flow::{CheckArgs, DrawArgs, DrawFormat, FlowCommand, ImportArgs, ListArgs, RunFlowArgs};
pub use users::{AuditArgs, UserArgs, UsersCommand};

/// DeerFlow backend.
#[derive(Debug, Parser)]
#[command(name = "deerflow", version, propagate_version = true)]
pub struct Cli {
    /// Command; `serve` by default.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of `serve`, when no command is given.
    #[command(flatten)]
    pub serve: ServeArgs,
}

impl Cli {
    /// Returns the command. Options of `serve` may also precede its name; those after it take
    /// precedence.
    ///
    /// # Errors
    /// Options of `serve` were given with another command.
    pub fn into_command(self) -> Result<Command, clap::Error> {
        let Self { command, serve } = self;
        match command {
            None => Ok(Command::Serve(serve)),
            Some(Command::Serve(args)) => Ok(Command::Serve(ServeArgs {
                host: args.host.or(serve.host),
                port: args.port.or(serve.port),
                file: args.file,
            })),
            Some(_) if serve.host.is_some() || serve.port.is_some() => Err(Self::command().error(
                ErrorKind::ArgumentConflict,
                "--host and --port are options of serve only",
            )),
            Some(other) => Ok(other),
        }
    }
}

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the API.
    Serve(ServeArgs),
    /// Chat with the agent at this terminal, without a server.
    Chat(ChatArgs),
    /// Serve the agent as tools to the MCP client that starts this program, over standard input and
    /// output.
    Mcp(FileArgs),
    /// Check, draw and run flows, which are graphs of agents in YAML or JSON files.
    #[command(subcommand)]
    Flow(FlowCommand),
    /// Check, upgrade or create config.yaml.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Manage API keys.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Manage accounts of people.
    #[command(subcommand)]
    Users(UsersCommand),
    /// List who did what: sign-ins, and changes of accounts, keys and settings.
    Audit(AuditArgs),
    /// List the processes that execute runs.
    Nodes(NodesArgs),
    /// List unfinished runs, or runs in a given state, of all users; cancel or retry a run.
    Runs(RunsArgs),
    /// List and resend webhook calls about ended runs.
    #[command(subcommand)]
    Webhooks(WebhooksCommand),
    /// Inspect and restart chat channels, and send messages again.
    #[command(subcommand)]
    Channels(ChannelsCommand),
    /// Check, compact, back up and restore the database.
    #[command(subcommand)]
    Db(DbCommand),
    /// Check all prerequisites of a start, and report how to fix problems.
    Doctor(FileArgs),
    /// Convert a document from standard input to Markdown on standard output; the server starts
    /// this for each document.
    #[command(hide = true)]
    ConvertDocument {
        /// File extension, such as pdf or docx.
        kind: String,
    },
}

/// Message and options of `chat`. Without a message it is interactive, or reads one message from
/// piped input.
#[derive(Debug, Clone, Default, Args)]
pub struct ChatArgs {
    /// Message to the agent.
    pub message: Vec<String>,
    /// Continue this thread.
    #[arg(long, value_name = "ID", conflicts_with = "continue", group = "on")]
    pub thread: Option<ThreadId>,
    /// Continue the most recently changed thread.
    #[arg(long = "continue", group = "on")]
    pub r#continue: bool,
    /// Use the message as the answer to the thread's pending questions: `yes` or other text, or,
    /// for several questions, JSON by their ids. Repeat the options of the original command.
    #[arg(long, requires = "on")]
    pub answer: bool,
    /// Model entry to use.
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Custom agent to use.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Reasoning effort, for models that support it.
    #[arg(long, value_name = "EFFORT")]
    pub reasoning: Option<String>,
    /// Disable thinking, for models that support it.
    #[arg(long)]
    pub no_thinking: bool,
    /// Plan with a todo list.
    #[arg(long)]
    pub plan: bool,
    /// Allow the agent to delegate tasks to subagents.
    #[arg(long)]
    pub subagents: bool,
    /// Maximum number of steps per answer.
    #[arg(long, value_name = "STEPS", default_value_t = 100)]
    pub recursion_limit: u64,
    /// Print each event as a line of JSON.
    #[arg(long)]
    pub json: bool,
    /// Configuration file.
    #[command(flatten)]
    pub file: FileArgs,
}

/// Subcommands of `config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check the file and report problems.
    Check(FileArgs),
    /// Upgrade the file to the current layout, keeping values and comments; the old file is saved
    /// as .bak.
    Upgrade(FileArgs),
    /// Print a commented example.
    Example,
}

/// Subcommands of `keys`. They also work while a server is running.
#[derive(Debug, Clone, Subcommand)]
pub enum KeysCommand {
    /// Create a key; it is shown once.
    Create {
        /// User that requests with the key act as: e-mail address of an account, or an id.
        #[arg(long)]
        user: String,
        /// Name of the key.
        #[arg(long)]
        name: Option<String>,
        /// Expiry: 90d, 12h, 2027-01-31 or a date-time; never by default.
        #[arg(long)]
        expires: Option<String>,
        /// Allow administration of the installation: skills and MCP servers.
        #[arg(long)]
        admin: bool,
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
    /// List all keys, or those of one user.
    List {
        /// Only keys of this user, by e-mail address or id.
        #[arg(long)]
        user: Option<String>,
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
    /// Revoke a key.
    Revoke {
        /// Key id, as shown by `list`.
        key_id: String,
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
}

impl KeysCommand {
    /// Configuration file.
    pub fn file(&self) -> &FileArgs {
        match self {
            Self::Create { file, .. } | Self::List { file, .. } | Self::Revoke { file, .. } => file,
        }
    }
}

/// Options of `nodes`. It also works while a server is running.
#[derive(Debug, Clone, Default, Args)]
pub struct NodesArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Configuration file.
    #[command(flatten)]
    pub file: FileArgs,
}

/// Options of `runs`. It also works while a server is running.
#[derive(Debug, Clone, Default, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct RunsArgs {
    /// Subcommand.
    #[command(subcommand)]
    pub command: Option<RunsCommand>,
    /// Only runs in this state; unfinished runs by default.
    #[arg(long, value_enum)]
    pub state: Option<RunState>,
    /// Only unfinished runs that seem to be stuck.
    #[arg(long, conflicts_with = "state")]
    pub stuck: bool,
    /// Seconds without a write after which an active run counts as stuck.
    #[arg(long, default_value_t = 600)]
    pub idle: u32,
    /// Maximum number of rows.
    #[arg(long, default_value_t = 50)]
    pub limit: usize,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Configuration file.
    #[command(flatten)]
    pub file: FileArgs,
}

impl RunsArgs {
    /// Configuration file.
    pub fn file(&self) -> &FileArgs {
        match &self.command {
            Some(RunsCommand::Cancel { file, .. } | RunsCommand::Retry { file, .. }) => file,
            None => &self.file,
        }
    }
}

/// Subcommands of `runs`.
#[derive(Debug, Clone, Subcommand)]
pub enum RunsCommand {
    /// Cancel a run.
    Cancel {
        /// Run id.
        run_id: String,
        /// Also roll back the changes of the run.
        #[arg(long)]
        rollback: bool,
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
    /// Retry a poisoned run: queue a new run with its request.
    Retry {
        /// Run id, as shown by `runs --state poisoned`.
        run_id: String,
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
}

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RunState {
    /// Queued or starting.
    Pending,
    /// Running.
    Running,
    /// Succeeded.
    Success,
    /// Failed.
    Error,
    /// Timed out.
    Timeout,
    /// Cancelled, or waiting for a user.
    Interrupted,
    /// Failed because each attempt ended with its process.
    Poisoned,
}

impl RunState {
    /// Returns the run statuses that belong to this state.
    pub fn statuses(self) -> Vec<RunStatus> {
        match self {
            Self::Pending => vec![RunStatus::Pending, RunStatus::Starting],
            Self::Running => vec![RunStatus::Running],
            Self::Success => vec![RunStatus::Success],
            Self::Error | Self::Poisoned => vec![RunStatus::Error],
            Self::Timeout => vec![RunStatus::Timeout],
            Self::Interrupted => vec![RunStatus::Interrupted],
        }
    }
}

/// Subcommands of `webhooks`. They also work while a server is running.
#[derive(Debug, Clone, Subcommand)]
pub enum WebhooksCommand {
    /// List undelivered calls.
    List {
        /// Only dead calls, which are no longer retried.
        #[arg(long)]
        dead: bool,
        /// Maximum number of rows.
        #[arg(long, default_value_t = 50)]
        limit: usize,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
    /// Resend calls, with as many attempts as new ones.
    Resend {
        /// Ids of their runs.
        #[arg(required = true)]
        run_ids: Vec<String>,
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
}

impl WebhooksCommand {
    /// Configuration file.
    pub fn file(&self) -> &FileArgs {
        match self {
            Self::List { file, .. } | Self::Resend { file, .. } => file,
        }
    }
}

/// Options of `serve`.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeArgs {
    /// Configuration file.
    #[command(flatten)]
    pub file: FileArgs,
    /// Address to listen on; default: GATEWAY_HOST, else 127.0.0.1.
    #[arg(long)]
    pub host: Option<String>,
    /// Port to listen on; default: GATEWAY_PORT, else 8001.
    #[arg(long)]
    pub port: Option<u16>,
}

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;
