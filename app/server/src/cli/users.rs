//! Arguments of `users` and `audit`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::FileArgs;

/// Account that a command changes.
#[derive(Debug, Clone, Args)]
pub struct UserArgs {
    /// E-mail address or id of the account.
    pub user: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Configuration file.
    #[command(flatten)]
    pub file: FileArgs,
}

/// Subcommands of `users`. They also work while a server is running; changes hold on all its nodes
/// within a second.
#[derive(Debug, Clone, Subcommand)]
pub enum UsersCommand {
    /// List accounts.
    List {
        /// Only accounts with this text in their e-mail, or with this id.
        #[arg(long, value_name = "TEXT")]
        q: Option<String>,
        /// Maximum number of rows.
        #[arg(long, default_value_t = 1_000)]
        limit: u64,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
    /// Create an account. Without `--password-stdin` the password is generated and written to a
    /// file.
    Create {
        /// E-mail address.
        email: String,
        /// Create an administrator.
        #[arg(long)]
        admin: bool,
        /// Read the password from the first line of standard input.
        #[arg(long)]
        password_stdin: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
    /// Set a random password, write it to a file, and end all sessions of the account.
    ResetPassword {
        /// E-mail address or id of the account; by default the first administrator.
        user: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
    /// Make an account an administrator.
    Promote(UserArgs),
    /// Make an administrator a user.
    Demote(UserArgs),
    /// Disable an account and end its sessions; its data stays.
    Disable(UserArgs),
    /// Enable a disabled account.
    Enable(UserArgs),
    /// Delete an account with everything of its user: threads, files, memory, agents, skills, keys,
    /// schedules.
    Delete {
        /// E-mail address or id of the account.
        user: String,
        /// Delete without a question.
        #[arg(long)]
        yes: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
    /// Show what users store and run, with their quotas.
    Usage {
        /// E-mail address of an account, or id of a user; all users who own data by default.
        user: Option<String>,
        /// Maximum number of users.
        #[arg(long, default_value_t = 100)]
        limit: u64,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
    /// Import the accounts of a DeerFlow installation with their ids and passwords. A repetition
    /// changes nothing.
    Import {
        /// SQLite file of DeerFlow.
        source: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
}

impl UsersCommand {
    /// Configuration file.
    pub fn file(&self) -> &FileArgs {
        match self {
            Self::List { file, .. }
            | Self::Create { file, .. }
            | Self::ResetPassword { file, .. }
            | Self::Delete { file, .. }
            | Self::Usage { file, .. }
            | Self::Import { file, .. } => file,
            Self::Promote(args) | Self::Demote(args) | Self::Disable(args) | Self::Enable(args) => {
                &args.file
            }
        }
    }
}

/// Options of `audit`. It also works while a server is running.
#[derive(Debug, Clone, Args)]
pub struct AuditArgs {
    /// Only entries with this account as actor or object, by its id or e-mail.
    #[arg(long)]
    pub user: Option<String>,
    /// Only entries of this action, such as `sign_in`.
    #[arg(long)]
    pub action: Option<String>,
    /// Only entries before this position.
    #[arg(long)]
    pub before: Option<i64>,
    /// Maximum number of rows.
    #[arg(long, default_value_t = 100)]
    pub limit: u64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Configuration file.
    #[command(flatten)]
    pub file: FileArgs,
}
