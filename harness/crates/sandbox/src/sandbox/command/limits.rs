//! Resource limits of one command.

use deerflow_core::config::SandboxLimitsConfig;

/// Resources that one command may use. The time limit is set per request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandLimits {
    /// Maximum number of processes and threads.
    pub processes: u64,
    /// Memory of one process, in bytes; with control groups also the sum over all processes.
    pub memory_bytes: u64,
    /// Maximum size of a written file, in bytes.
    pub file_bytes: u64,
    /// Maximum number of open files per process.
    pub open_files: u64,
    /// Processor time of one process, in seconds.
    pub cpu_seconds: u64,
    /// Size of the private `/tmp`, in bytes. It resides in memory.
    pub scratch_bytes: u64,
    /// Maximum output in bytes; a command that exceeds it is killed.
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
