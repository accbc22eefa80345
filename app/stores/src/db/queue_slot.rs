//! Position in the queue of SQLite's writer.

use metrics::{gauge, histogram};
use tokio::time::Instant;

/// A position in the writer's queue, counted by metrics while it exists.
pub(crate) struct QueueSlot(Instant);

impl QueueSlot {
    /// Begins to count a position.
    pub(crate) fn new() -> Self {
        gauge!("deerflow_write_queue_depth").increment(1.0);
        Self(Instant::now())
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        gauge!("deerflow_write_queue_depth").decrement(1.0);
        histogram!("deerflow_write_queue_seconds").record(self.0.elapsed());
    }
}
