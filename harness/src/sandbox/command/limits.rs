//! How much of the machine one command may take.

use crate::config::SandboxLimitsConfig;

/// What a command may use. Time is limited per request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandLimits {
    /// Processes and threads at once.
    pub processes: u64,
    /// Data that one process may hold, in bytes; with control groups also what all of them hold together.
    pub memory_bytes: u64,
    /// The longest file that it may write, in bytes.
    pub file_bytes: u64,
    /// Files that one process may have open.
    pub open_files: u64,
    /// Processor time of one process, in seconds.
    pub cpu_seconds: u64,
    /// What fits into its private `/tmp`, in bytes. It lies in memory.
    pub scratch_bytes: u64,
    /// What it may print before it is ended, in bytes.
    pub output_bytes: u64,
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self::from(&SandboxLimitsConfig::default())
    }
}

impl From<&SandboxLimitsConfig> for CommandLimits {
    fn from(config: &SandboxLimitsConfig) -> Self {
        let bytes = |mb: u64| mb.saturating_mul(1 << 20);
        Self {
            processes: config.processes,
            memory_bytes: bytes(config.memory_mb),
            file_bytes: bytes(config.file_mb),
            open_files: config.open_files,
            cpu_seconds: config.cpu_seconds,
            scratch_bytes: bytes(config.scratch_mb),
            output_bytes: bytes(config.output_mb),
        }
    }
}
