//! Converts uploaded documents to Markdown in a worker process per document.

use std::sync::Arc;
use std::time::Duration;

use harness::documents::{DocumentReader, ProcessDocumentReader};

use crate::own_program::{self, CONVERT_DOCUMENT};

/// Timeout of one conversion.
const CONVERSION_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the document reader; `None` if this program is not the `deerflow` binary.
pub(super) fn reader() -> Option<Arc<dyn DocumentReader>> {
    let program = own_program::path()?;
    Some(Arc::new(ProcessDocumentReader::new(
        program,
        [CONVERT_DOCUMENT.to_owned()],
        CONVERSION_TIMEOUT,
    )))
}
