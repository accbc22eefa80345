//! Who turns uploaded documents into Markdown: this program once more, for each document.

use std::sync::Arc;
use std::time::Duration;

use harness::documents::{DocumentReader, ProcessDocumentReader};

/// How long a document may take.
const LIMIT: Duration = Duration::from_secs(60);

/// The reader of documents; none, which the log tells, where this program does not know where it is.
pub(super) fn reader() -> Option<Arc<dyn DocumentReader>> {
    match std::env::current_exe() {
        Ok(program) => Some(Arc::new(ProcessDocumentReader::new(program, ["convert-document".to_owned()], LIMIT))),
        Err(error) => {
            tracing::error!(%error, "documents are not converted: this program cannot be found");
            None
        }
    }
}
