//! Record of the calls that a fake received.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::Notify;

/// One call.
#[derive(Debug, Clone, Serialize)]
pub struct Call {
    /// Name of the method, such as `sendMessage` or `PATCH im/v1/messages`.
    pub method: String,
    /// Decoded parameters. Files are recorded as `{"name", "size", "base64"}`.
    pub body: Value,
    /// Status of the answer, or error code of the platform; 0 for success.
    pub error: i64,
    /// Milliseconds since the fake started.
    pub at_ms: u64,
}

/// Record of calls. Clones share it.
#[derive(Debug, Clone)]
pub struct Calls {
    started: Instant,
    calls: Arc<Mutex<Vec<Call>>>,
    changed: Arc<Notify>,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            calls: Arc::default(),
            changed: Arc::default(),
        }
    }
}

impl Calls {
    /// Records a call.
    pub fn record(&self, method: impl Into<String>, body: Value, error: i64) {
        let at_ms = self.started.elapsed().as_millis() as u64;
        self.calls.lock().push(Call {
            method: method.into(),
            body,
            error,
            at_ms,
        });
        self.changed.notify_waiters();
    }

    /// Returns all calls so far.
    pub fn all(&self) -> Vec<Call> {
        self.calls.lock().clone()
    }

    /// Returns the calls of one method.
    pub fn of(&self, method: &str) -> Vec<Call> {
        self.calls
            .lock()
            .iter()
            .filter(|call| call.method == method)
            .cloned()
            .collect()
    }

    /// Forgets all calls.
    pub fn clear(&self) {
        self.calls.lock().clear();
    }

    /// Waits until `found` returns a value for the calls so far. The caller limits the time.
    pub async fn wait_for<T>(&self, mut found: impl FnMut(&[Call]) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(value) = found(&self.calls.lock()) {
                return value;
            }
            changed.await;
        }
    }
}
