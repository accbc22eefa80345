//! Faults of the platform in memory, and what earlier processes did on it.

use uuid::Uuid;

use super::memory::MemoryPlatform;
use super::message::live_key;
use crate::platform::PlatformError;

/// Number of steps of the close of a connection.
const CLOSE_STEPS: usize = 20;

impl MemoryPlatform {
    /// Scripts errors of the next calls to send.
    pub fn fail(&self, faults: impl IntoIterator<Item = PlatformError>) {
        self.inner.lock().faults.extend(faults);
    }

    /// Fails all calls that send files, and no others.
    pub fn fail_files(&self) {
        self.inner.lock().files_fail = true;
    }

    /// Loses the answers of the next calls to send, after their effect.
    pub fn lose_answers(&self, calls: usize) {
        self.inner.lock().lost_answers = calls;
    }

    /// Breaks all connections.
    pub fn disconnect(&self) {
        self.inner.lock().breaks += 1;
        self.changed.notify_waiters();
    }

    /// Shows the live message of an answer, as a node that ended before it recorded that.
    pub fn begin_live(&self, row: Uuid, chat: &str, text: &str) {
        self.post(&live_key(row), chat, text, false);
    }

    /// Returns the number of live messages that were shown without a preparation: a restart would
    /// repeat them.
    pub fn unprepared(&self) -> usize {
        self.inner.lock().unprepared
    }

    /// Closes a connection after a stop, in several steps.
    pub(super) async fn close(&self) -> Result<(), PlatformError> {
        for _ in 0..CLOSE_STEPS {
            tokio::task::yield_now().await;
        }
        self.inner.lock().closed += 1;
        Ok(())
    }

    /// Returns the number of connections that were closed after a stop.
    pub fn closed(&self) -> usize {
        self.inner.lock().closed
    }
}
