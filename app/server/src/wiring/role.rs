//! Role of a process.

/// Share of a process in the work that is pending in the stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Server: takes part in all work.
    Server,
    /// Guest: executes only runs of its own client. Queued runs, crons, webhooks and maintenance
    /// are left to servers.
    Guest,
}
