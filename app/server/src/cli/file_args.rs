//! Option that names the configuration file.

use std::path::PathBuf;

use clap::Args;

/// Configuration file.
#[derive(Debug, Clone, Default, Args)]
pub struct FileArgs {
    /// Configuration file; default: DEER_FLOW_CONFIG_PATH, else config.yaml in this directory or
    /// its parent.
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
}
