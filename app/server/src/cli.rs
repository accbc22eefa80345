//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

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

/// What the binary can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the API.
    Serve(ServeArgs),
    /// Look after config.yaml.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Look after the keys with which programs act for users.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Check everything a start needs, and say how to mend it.
    Doctor(FileArgs),
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

/// Which configuration is meant.
#[derive(Debug, Clone, Default, Args)]
pub struct FileArgs {
    /// The file; else DEER_FLOW_CONFIG_PATH, else config.yaml here or in the directory above.
    #[arg(long, value_name = "FILE")]
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
    use clap::CommandFactory;

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
}
