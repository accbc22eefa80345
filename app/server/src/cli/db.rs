//! Options of `db`.

use std::path::PathBuf;

use clap::Subcommand;

use super::file_args::FileArgs;

/// Subcommands of `db`.
#[derive(Debug, Clone, Subcommand)]
pub enum DbCommand {
    /// Check the integrity of the database; also while a server is running.
    Check {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
    /// Compact the database; a SQLite file only while no server is running.
    Vacuum {
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
    /// Write a backup of a SQLite database; also while a server is running.
    Backup {
        /// New file; it must not exist.
        target: PathBuf,
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
    /// Replace a SQLite database by a backup, which is checked first, while no server is running.
    /// The former database gets another name.
    Restore {
        /// Backup.
        backup: PathBuf,
        /// Configuration file.
        #[command(flatten)]
        file: FileArgs,
    },
}

impl DbCommand {
    /// Configuration file.
    pub fn file(&self) -> &FileArgs {
        match self {
            Self::Check { file, .. }
            | Self::Vacuum { file }
            | Self::Backup { file, .. }
            | Self::Restore { file, .. } => file,
        }
    }
}
