//! Retries of reads during a store outage.

use std::time::Duration;

/// Pause between retries.
pub(crate) const RETRY: Duration = Duration::from_millis(500);
/// Maximum duration of an outage before a read fails. Must be shorter than the timeout of the
/// prepare phase.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_secs(45);
