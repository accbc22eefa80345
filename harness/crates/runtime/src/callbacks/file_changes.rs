//! Journal row with the files that a run changed.

use serde_json::{Map, Value};

use super::events::RunEventCallback;
use crate::ports::{WORKSPACE_CHANGES, category};

impl RunEventCallback {
    /// Journals the files that the run changed.
    pub(crate) fn files_changed(&mut self, report: Value) {
        let count = |status: &str| report["summary"][status].as_u64().unwrap_or(0);
        let files: u64 = ["created", "modified", "deleted", "symlink_created"]
            .map(count)
            .iter()
            .sum();
        let text = format!("{files} files changed");
        let metadata = Map::from_iter([(WORKSPACE_CHANGES.to_owned(), report)]);
        self.push(
            WORKSPACE_CHANGES,
            category::WORKSPACE,
            Value::String(text),
            metadata,
        );
    }
}
