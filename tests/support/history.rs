//! Records requests and observations of clients for `cargo xtask check-history`; see
//! `docs/histories.md`.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use serde_json::{Value, json};

/// Recorder of one history. Clones write to the same file; the default recorder writes nothing.
#[derive(Debug, Clone, Default)]
pub struct Recorder(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    /// The time is read under the lock of the file, so that entries are in order.
    file: Mutex<File>,
    began: Instant,
    named: AtomicU64,
}

impl Recorder {
    /// Creates a history in `folder`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created.
    pub fn into_folder(folder: &Path, name: &str) -> std::io::Result<Self> {
        let file = Mutex::new(File::create(folder.join(format!("{name}.jsonl")))?);
        Ok(Self(Some(Arc::new(Inner {
            file,
            began: Instant::now(),
            named: AtomicU64::new(0),
        }))))
    }

    /// Returns a name that is unique in the history.
    #[must_use]
    pub fn name(&self, kind: &str) -> String {
        let number = self
            .0
            .as_ref()
            .map_or(0, |inner| inner.named.fetch_add(1, Ordering::Relaxed));
        format!("{kind}{number}")
    }

    /// Records the operation `op` with these fields.
    pub fn write(&self, op: &str, mut fields: Value) {
        let Some(inner) = &self.0 else { return };
        let mut file = inner.file.lock();
        let at = u64::try_from(inner.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        fields["op"] = json!(op);
        fields["at"] = json!(at);
        writeln!(file, "{fields}").expect("the history can be written");
    }
}
