//! State of a connection to a child process or server: its first failure, its traffic quota and the
//! end of its stderr.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Maximum traffic that a process may send between two requests to it. The limit leaves room for
/// progress and log messages and stops floods.
#[derive(Debug, Clone, Copy)]
pub struct TrafficQuota {
    /// Maximum number of bytes.
    pub bytes: usize,
    /// Maximum number of messages.
    pub messages: u32,
}

impl Default for TrafficQuota {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            messages: 10_000,
        }
    }
}

/// First failure of a connection, and the counters that detect excessive traffic. Clones share the
/// state.
#[derive(Debug, Clone, Default)]
pub struct ConnectionHealth {
    state: Arc<Mutex<HealthState>>,
    unsolicited_bytes: Arc<AtomicUsize>,
    messages: Arc<AtomicU32>,
    quota: TrafficQuota,
}

#[derive(Debug, Default)]
struct HealthState {
    failure: Option<String>,
    stderr_tail: String,
}

impl ConnectionHealth {
    /// Creates the state of a healthy connection with this quota.
    #[cfg(feature = "child-process")]
    pub fn with_quota(quota: TrafficQuota) -> Self {
        Self {
            quota,
            ..Self::default()
        }
    }

    /// Resets the counters. Called for each request: the traffic that follows may be its response.
    pub fn reset_quota(&self) {
        self.unsolicited_bytes.store(0, Ordering::Relaxed);
        self.messages.store(0, Ordering::Relaxed);
    }

    /// Counts a received message or invalid line. Returns `false` and fails the connection if the
    /// quota is exceeded.
    pub fn count_message(&self) -> bool {
        let max = self.quota.messages;
        let is_fine = self.messages.fetch_add(1, Ordering::Relaxed) < max;
        if !is_fine {
            self.fail(format!("it sent more than {max} unsolicited messages"));
        }
        is_fine
    }

    /// Counts received bytes. Returns `false` and fails the connection if the quota is exceeded.
    pub fn count_bytes(&self, bytes: usize) -> bool {
        let max = self.quota.bytes;
        let is_fine = self.unsolicited_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= max;
        if !is_fine {
            self.fail(format!(
                "it wrote more than {} MiB of unsolicited output",
                max >> 20
            ));
        }
        is_fine
    }

    /// Stores the failure if it is the first.
    pub fn fail(&self, failure: impl Into<String>) {
        self.state
            .lock()
            .failure
            .get_or_insert_with(|| failure.into());
    }

    /// Stores the end of the process's stderr.
    pub(crate) fn set_stderr_tail(&self, text: String) {
        self.state.lock().stderr_tail = text;
    }

    /// Returns the first failure.
    pub fn failure(&self) -> Option<String> {
        self.state.lock().failure.clone()
    }

    /// Returns the end of the process's stderr.
    pub fn stderr_tail(&self) -> String {
        self.state.lock().stderr_tail.clone()
    }
}
