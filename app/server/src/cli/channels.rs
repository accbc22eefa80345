//! Options of `channels`.

use clap::{Args, Subcommand, ValueEnum};
use deerflow_domain::channels::{InboxState, OutgoingState};

use super::file_args::FileArgs;

/// Subcommands of `channels`. They also work while a server is running.
#[derive(Debug, Clone, Subcommand)]
pub enum ChannelsCommand {
    /// Show configuration, holder and waiting work of all channels.
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
    /// Ask the platform of a channel who its bot is; fails if the platform refuses the bot.
    Test {
        /// Channel, such as telegram.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
    /// List received messages, the newest first.
    Inbox {
        /// Only messages in this state.
        #[arg(long, value_enum)]
        state: Option<InboxStateArg>,
        /// Options of the list.
        #[command(flatten)]
        list: RowArgs,
    },
    /// List dead letters, which are messages that could not be sent, the newest first.
    Letters {
        /// State of the listed messages.
        #[arg(long, value_enum, default_value_t = OutgoingStateArg::Dead)]
        state: OutgoingStateArg,
        /// Options of the list.
        #[command(flatten)]
        list: RowArgs,
    },
    /// Send dead letters again.
    Resend {
        /// Ids, as shown by `letters`.
        #[arg(required = true)]
        ids: Vec<String>,
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
    /// Restart a channel: its connection is closed before a new one is opened.
    Restart {
        /// Channel, such as telegram.
        name: String,
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
}

impl ChannelsCommand {
    /// Configuration file.
    pub fn file(&self) -> &FileArgs {
        match self {
            Self::Inbox { list, .. } | Self::Letters { list, .. } => &list.file,
            Self::Status { file, .. }
            | Self::Test { file, .. }
            | Self::Resend { file, .. }
            | Self::Restart { file, .. } => file,
        }
    }
}

/// Options of a list of messages.
#[derive(Debug, Clone, Args)]
pub struct RowArgs {
    /// Only messages of this channel.
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Maximum number of rows.
    #[arg(long, default_value_t = 50)]
    pub limit: u64,
    /// Also print the texts of the messages.
    #[arg(long)]
    pub text: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Configuration file.
    #[command(flatten)]
    pub file: FileArgs,
}

/// State of a received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum InboxStateArg {
    /// Not handled to its end.
    Waiting,
    /// Answered.
    Answered,
    /// Refused.
    Refused,
    /// Abandoned after repeated failures.
    SetAside,
}

impl From<InboxStateArg> for InboxState {
    fn from(state: InboxStateArg) -> Self {
        match state {
            InboxStateArg::Waiting => Self::Waiting,
            InboxStateArg::Answered => Self::Answered,
            InboxStateArg::Refused => Self::Refused,
            InboxStateArg::SetAside => Self::SetAside,
        }
    }
}

/// State of a message to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutgoingStateArg {
    /// Not yet sent.
    Pending,
    /// Sent.
    Sent,
    /// Dead letter.
    Dead,
}

impl From<OutgoingStateArg> for OutgoingState {
    fn from(state: OutgoingStateArg) -> Self {
        match state {
            OutgoingStateArg::Pending => Self::Pending,
            OutgoingStateArg::Sent => Self::Sent,
            OutgoingStateArg::Dead => Self::Dead,
        }
    }
}
