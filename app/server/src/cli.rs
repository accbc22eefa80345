//! The command line.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use harness::ids::ThreadId;
use harness::runtime::runs::RunStatus;

/// DeerFlow's backend.
#[derive(Debug, Parser)]
#[command(name = "deerflow", version, propagate_version = true)]
pub struct Cli {
    /// What to do; `serve` when left out.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of `serve`, for when it is left out.
    #[command(flatten)]
    pub serve: ServeArgs,
}

impl Cli {
    /// What to do. Options of `serve` may stand before its name; what stands after it counts first.
    ///
    /// # Errors
    /// Options of `serve` with another command.
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
                "--host and --port are options of serve alone",
            )),
            Some(other) => Ok(other),
        }
    }
}

/// What the binary can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the API.
    Serve(ServeArgs),
    /// Talk to the agent at this terminal, without a server.
    Chat(ChatArgs),
    /// Serve the agent as tools to an MCP client that starts this program: over standard input and output, without a server.
    Mcp(FileArgs),
    /// Look after config.yaml.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Look after the keys with which programs act for users.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Show the processes that work on the runs.
    Nodes(NodesArgs),
    /// Show runs of all users that are not over, or are in a state; cancel one.
    Runs(RunsArgs),
    /// Look after the calls that tell of runs' ends.
    #[command(subcommand)]
    Webhooks(WebhooksCommand),
    /// Check everything a start needs, and say how to mend it.
    Doctor(FileArgs),
    /// Read a document from standard input and write its Markdown to standard output: what the server starts for each document.
    #[command(hide = true)]
    ConvertDocument {
        /// Its ending: pdf, docx and the like.
        kind: String,
    },
}

/// What to talk about, and how. Without a message a conversation begins; what is piped in is one message.
#[derive(Debug, Clone, Default, Args)]
pub struct ChatArgs {
    /// What to say.
    pub message: Vec<String>,
    /// Go on with this thread.
    #[arg(long, value_name = "ID", conflicts_with = "continue", group = "on")]
    pub thread: Option<ThreadId>,
    /// Go on with the thread that was last changed.
    #[arg(long = "continue", group = "on")]
    pub r#continue: bool,
    /// The message answers what the thread waits for: `yes` or words, or, where several things are asked, JSON by their ids. Name the
    /// options that the question was asked with.
    #[arg(long, requires = "on")]
    pub answer: bool,
    /// The model entry to ask.
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// The custom agent to ask.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// How hard the model thinks, where it can be told.
    #[arg(long, value_name = "EFFORT")]
    pub reasoning: Option<String>,
    /// Answer without thinking first, where the model can.
    #[arg(long)]
    pub no_thinking: bool,
    /// Plan with a list of things to do.
    #[arg(long)]
    pub plan: bool,
    /// Allow the agent to hand tasks to others.
    #[arg(long)]
    pub subagents: bool,
    /// Most steps of an answer.
    #[arg(long, value_name = "STEPS", default_value_t = 100)]
    pub recursion_limit: u64,
    /// Print every event as a line of JSON.
    #[arg(long)]
    pub json: bool,
    /// Which configuration is meant.
    #[command(flatten)]
    pub file: FileArgs,
}

/// What can be done with the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Read it and say what is wrong with it.
    Check(FileArgs),
    /// Bring it to the current layout, keeping values and comments; the old file stays as .bak.
    Upgrade(FileArgs),
    /// Print a commented example.
    Example,
}

/// What can be done with API keys. A server may be running meanwhile.
#[derive(Debug, Clone, Subcommand)]
pub enum KeysCommand {
    /// Make a key; it is shown once.
    Create {
        /// Who acts with it.
        #[arg(long)]
        user: String,
        /// What to call it.
        #[arg(long)]
        name: Option<String>,
        /// When it ends: 90d, 12h, 2027-01-31 or a date-time; never when left out.
        #[arg(long)]
        expires: Option<String>,
        /// Its user manages the installation with it: skills and MCP servers.
        #[arg(long)]
        admin: bool,
        /// Which configuration is meant.
        #[command(flatten)]
        file: FileArgs,
    },
    /// Show what is known of all keys, or of a user's.
    List {
        /// Whose.
        #[arg(long)]
        user: Option<String>,
        /// Which configuration is meant.
        #[command(flatten)]
        file: FileArgs,
    },
    /// Take a key back.
    Revoke {
        /// Its id, as `list` shows it.
        key_id: String,
        /// Which configuration is meant.
        #[command(flatten)]
        file: FileArgs,
    },
}

impl KeysCommand {
    /// Which configuration is meant.
    pub fn file(&self) -> &FileArgs {
        match self {
            Self::Create { file, .. } | Self::List { file, .. } | Self::Revoke { file, .. } => file,
        }
    }
}

/// How to show processes. A server may be running meanwhile.
#[derive(Debug, Clone, Default, Args)]
pub struct NodesArgs {
    /// As JSON.
    #[arg(long)]
    pub json: bool,
    /// Which configuration is meant.
    #[command(flatten)]
    pub file: FileArgs,
}

/// Which runs to show. A server may be running meanwhile.
#[derive(Debug, Clone, Default, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct RunsArgs {
    /// What to do with one.
    #[command(subcommand)]
    pub command: Option<RunsCommand>,
    /// Only those in this state; those that are not over when left out.
    #[arg(long, value_enum)]
    pub state: Option<RunState>,
    /// Only those that are not over and on which nobody seems to work.
    #[arg(long, conflicts_with = "state")]
    pub stuck: bool,
    /// Seconds that a run at work may write nothing before it counts as stuck.
    #[arg(long, default_value_t = 600)]
    pub idle: u32,
    /// How many at most.
    #[arg(long, default_value_t = 50)]
    pub limit: usize,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
    /// Which configuration is meant.
    #[command(flatten)]
    pub file: FileArgs,
}

impl RunsArgs {
    /// Which configuration is meant.
    pub fn file(&self) -> &FileArgs {
        match &self.command {
            Some(RunsCommand::Cancel { file, .. }) => file,
            None => &self.file,
        }
    }
}

/// What can be done with a run.
#[derive(Debug, Clone, Subcommand)]
pub enum RunsCommand {
    /// Tell one to stop.
    Cancel {
        /// Its id.
        run_id: String,
        /// Whether what it did goes, too.
        #[arg(long)]
        rollback: bool,
        /// Which configuration is meant.
        #[command(flatten)]
        file: FileArgs,
    },
}

/// A state of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RunState {
    /// Waits, or begins.
    Pending,
    /// Is at work.
    Running,
    /// Did what was asked.
    Success,
    /// Failed.
    Error,
    /// Took too long.
    Timeout,
    /// Was stopped, or waits for a person.
    Interrupted,
}

impl RunState {
    /// The statuses that are called so.
    pub fn statuses(self) -> Vec<RunStatus> {
        match self {
            Self::Pending => vec![RunStatus::Pending, RunStatus::Starting],
            Self::Running => vec![RunStatus::Running],
            Self::Success => vec![RunStatus::Success],
            Self::Error => vec![RunStatus::Error],
            Self::Timeout => vec![RunStatus::Timeout],
            Self::Interrupted => vec![RunStatus::Interrupted],
        }
    }
}

/// What can be done with calls that tell of runs' ends. A server may be running meanwhile.
#[derive(Debug, Clone, Subcommand)]
pub enum WebhooksCommand {
    /// Show those that were not taken yet.
    List {
        /// Only those that are not tried any more.
        #[arg(long)]
        dead: bool,
        /// How many at most.
        #[arg(long, default_value_t = 50)]
        limit: usize,
        /// As JSON.
        #[arg(long)]
        json: bool,
        /// Which configuration is meant.
        #[command(flatten)]
        file: FileArgs,
    },
    /// Send some again, with as many tries as new ones.
    Resend {
        /// The runs that they tell of.
        #[arg(required = true)]
        run_ids: Vec<String>,
        /// Which configuration is meant.
        #[command(flatten)]
        file: FileArgs,
    },
}

impl WebhooksCommand {
    /// Which configuration is meant.
    pub fn file(&self) -> &FileArgs {
        match self {
            Self::List { file, .. } | Self::Resend { file, .. } => file,
        }
    }
}

/// Which configuration is meant.
#[derive(Debug, Clone, Default, Args)]
pub struct FileArgs {
    /// The file; else DEER_FLOW_CONFIG_PATH, else config.yaml here or in the directory above.
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
}

/// How to serve.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeArgs {
    /// Which configuration is meant.
    #[command(flatten)]
    pub file: FileArgs,
    /// The address to listen on; else GATEWAY_HOST, else 127.0.0.1.
    #[arg(long)]
    pub host: Option<String>,
    /// The port to listen on; else GATEWAY_PORT, else 8001.
    #[arg(long)]
    pub port: Option<u16>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn serving_is_what_happens_without_a_command() {
        let cli = Cli::parse_from(["deerflow", "--port", "9000"]);
        assert!(cli.command.is_none());
        assert_eq!(cli.serve.port, Some(9000));
        let cli = Cli::parse_from(["deerflow", "serve", "--config", "a.yaml"]);
        assert!(matches!(cli.command, Some(Command::Serve(args)) if args.file.config.is_some()));
    }

    #[test]
    fn options_of_serve_count_before_its_name_as_after_it_and_with_no_other_command() {
        let command = |words: &str| Cli::parse_from(words.split(' ')).into_command();
        for words in [
            "deerflow --port 9000 serve",
            "deerflow serve --port 9000",
            "deerflow --port 8 serve --port 9000",
            "deerflow --port 9000",
        ] {
            assert!(
                matches!(
                    command(words),
                    Ok(Command::Serve(ServeArgs {
                        port: Some(9000),
                        ..
                    }))
                ),
                "{words}"
            );
        }
        let error = command("deerflow --port 9000 doctor")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("--host and --port are options of serve alone"),
            "{error}"
        );
    }

    #[test]
    fn the_file_may_be_named_before_the_command() {
        for words in [
            ["--config", "a.yaml", "config", "check"],
            ["config", "--config", "a.yaml", "check"],
            ["config", "check", "--config", "a.yaml"],
        ] {
            let cli = Cli::parse_from(["deerflow"].into_iter().chain(words));
            let Some(Command::Config(ConfigCommand::Check(args))) = cli.command else {
                panic!("{words:?} checks nothing")
            };
            assert_eq!(args.config, Some(PathBuf::from("a.yaml")), "{words:?}");
        }
    }
}
