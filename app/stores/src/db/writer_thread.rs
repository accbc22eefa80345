//! Thread of SQLite's writer.

use std::thread::JoinHandle;

use deerflow_core::tasks::panic_text;
use tokio_util::sync::CancellationToken;

/// The writer's thread. When it is dropped, the thread completes the queued work and ends.
pub(crate) struct WriterThread {
    pub(crate) stop: CancellationToken,
    pub(crate) thread: Option<JoinHandle<()>>,
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            let reason = panic_text(panic.as_ref());
            tracing::error!(reason, "the writer of the database panicked");
        }
    }
}
