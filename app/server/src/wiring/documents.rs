//! Who turns uploaded documents into Markdown: this program once more, for each document.

use std::sync::Arc;
use std::time::Duration;

use harness::documents::{DocumentReader, ProcessDocumentReader};

use crate::own_program::{self, CONVERT_DOCUMENT};

/// How long a document may take.
const LIMIT: Duration = Duration::from_secs(60);

/// The reader of documents; none where this is another program than `deerflow`.
pub(super) fn reader() -> Option<Arc<dyn DocumentReader>> {
    let program = own_program::path()?;
    Some(Arc::new(ProcessDocumentReader::new(
        program,
        [CONVERT_DOCUMENT.to_owned()],
        LIMIT,
    )))
}
