//! Progress of the discovery of a server, and the tools that it found.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::catalog::ListedTool;

/// Minimum interval between discoveries of a server that announces tool list changes.
const MIN_REDISCOVERY_INTERVAL: Duration = Duration::from_secs(5);
/// Delay before the first retry after a failed discovery; doubles with each further failure.
const RETRY_DELAY: Duration = Duration::from_secs(30);
/// Maximum retry delay.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(600);

/// Progress of the discovery of one server.
#[derive(Debug, Default)]
pub(super) struct DiscoveryState {
    /// Start of the running discovery, if one is running.
    pub(super) started_at: Option<Instant>,
    /// End of the last discovery.
    pub(super) finished_at: Option<Instant>,
    /// Number of consecutive failures.
    pub(super) failures: u32,
    /// `true` once a discovery has succeeded.
    pub(super) is_known: bool,
}

/// Discovered tools of one server.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolList {
    /// Incremented when the tools change; 0 before the first discovery succeeds.
    pub(super) version: u64,
    pub(super) tools: Arc<[ListedTool]>,
    /// Number of finished discoveries, failed ones included.
    pub(super) attempts: u64,
}

impl DiscoveryState {
    /// Reports whether a new discovery must start. `list_changed` is `true` if the server announced a
    /// change.
    pub(super) fn is_due(&self, list_changed: bool) -> bool {
        let Some(finished_at) = self.finished_at else {
            return true;
        };
        let delay = match self.failures {
            0 if list_changed => MIN_REDISCOVERY_INTERVAL,
            0 => return false,
            failures => RETRY_DELAY
                .saturating_mul(1 << (failures - 1).min(10))
                .min(MAX_RETRY_DELAY),
        };
        finished_at.elapsed() >= delay
    }
}
