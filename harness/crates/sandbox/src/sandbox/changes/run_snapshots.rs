//! Snapshots of active runs, taken before the first call that may change files.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::snapshot::FileSnapshot;
use super::{ChangeLimits, ChangeReport};
use crate::sandbox::blocking_task::run_blocking;
use crate::sandbox::file_error::FileFailure;
use crate::sandbox::thread_files::ThreadFiles;
use deerflow_core::ids::RunId;

/// Maximum total size of the text of one snapshot, in bytes.
const MAX_TEXT_BYTES: usize = 4 << 20;
/// Maximum total size of the text of all snapshots, in bytes.
const MAX_ALL_TEXT_BYTES: usize = 256 << 20;

/// Snapshots of the runs of one process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct RunSnapshots(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    runs: Mutex<HashMap<RunId, Slot>>,
    text_bytes: AtomicUsize,
}

/// Snapshot of a run; calls of one batch wait for the same scan.
type Slot = Arc<OnceCell<Snapshot>>;

/// A snapshot that counts its text in the total as long as it exists.
#[derive(Debug)]
struct Snapshot {
    files: FileSnapshot,
    thread: ThreadFiles,
    text_bytes: usize,
    shared: Arc<Shared>,
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.shared
            .text_bytes
            .fetch_sub(self.text_bytes, Ordering::Relaxed);
    }
}

impl RunSnapshots {
    /// Scans the files of the run's thread, unless that was done before.
    ///
    /// # Errors
    /// [`FileFailure::Aborted`] if the scan panicked.
    pub async fn take_once(&self, run: &RunId, files: &ThreadFiles) -> Result<(), FileFailure> {
        let slot = Arc::clone(self.0.runs.lock().entry(run.clone()).or_default());
        slot.get_or_try_init(|| self.take(files)).await.map(drop)
    }

    /// Scans the files again, returns the changes since the snapshot, and removes the snapshot.
    /// `None` without changes, or if no call of the run may have changed files.
    ///
    /// # Errors
    /// [`FileFailure::Aborted`] if the scan panicked.
    pub async fn changes(&self, run: &RunId) -> Result<Option<ChangeReport>, FileFailure> {
        let Some(slot) = self.0.runs.lock().remove(run) else {
            return Ok(None);
        };
        run_blocking(move || {
            Ok(slot.get().and_then(|before| {
                let after = before.files.after(before.thread.blocking().dirs());
                ChangeReport::of(&before.files, &after)
            }))
        })
        .await
    }

    /// Removes the snapshot of a run.
    pub fn remove(&self, run: &RunId) {
        self.0.runs.lock().remove(run);
    }

    async fn take(&self, files: &ThreadFiles) -> Result<Snapshot, FileFailure> {
        let shared = Arc::clone(&self.0);
        let thread = files.clone();
        run_blocking(move || {
            let used = shared.text_bytes.load(Ordering::Relaxed);
            let bytes = MAX_ALL_TEXT_BYTES.saturating_sub(used).min(MAX_TEXT_BYTES);
            let dirs = thread.blocking().dirs();
            let files = FileSnapshot::before(dirs, ChangeLimits::default(), bytes as u64);
            let text_bytes = files.text_bytes();
            shared.text_bytes.fetch_add(text_bytes, Ordering::Relaxed);
            Ok(Snapshot {
                files,
                thread,
                text_bytes,
                shared,
            })
        })
        .await
    }
}
