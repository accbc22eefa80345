//! What the process of one document does: reads it, gives everything up, and only then looks at what it read.

use std::io::{Cursor, Read, Write};

use office_oxide::DocumentFormat;
use office_oxide::options::ParseOptions;

use super::confine::{self, Unconfined};
use super::kind::DocumentKind;
use super::reader::LONGEST;
use super::workbook;

/// The largest document, in bytes.
const LARGEST: u64 = 256 << 20;

/// Why a worker has no Markdown to give.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// The document did not come, or its Markdown did not leave.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// This process could still do harm, so it did not begin.
    #[error(transparent)]
    Unconfined(#[from] Unconfined),
    /// The document is larger than is read.
    #[error("it has more than {} MiB", LARGEST >> 20)]
    TooLarge,
    /// Its Markdown is longer than is kept.
    #[error("its text has more than {} MiB", LONGEST >> 20)]
    TooLong,
    /// It is broken, locked or of another kind.
    #[error("{0}")]
    Broken(String),
}

/// Reads a document from `input` and writes its Markdown to `output`. Meanwhile the process loses its rights for good.
pub fn work(kind: DocumentKind, input: impl Read, mut output: impl Write) -> Result<(), WorkError> {
    let mut document = Vec::new();
    input.take(LARGEST + 1).read_to_end(&mut document)?;
    if document.len() as u64 > LARGEST {
        return Err(WorkError::TooLarge);
    }
    confine::give_up()?;
    let markdown = convert(kind, document)?;
    if markdown.len() as u64 >= LONGEST {
        return Err(WorkError::TooLong);
    }
    output.write_all(markdown.as_bytes())?;
    Ok(output.flush()?)
}

/// The Markdown of a document.
fn convert(kind: DocumentKind, document: Vec<u8>) -> Result<String, WorkError> {
    let format = match kind {
        DocumentKind::Pdf => return pdf(&document),
        DocumentKind::Xls => return workbook::xls(document),
        DocumentKind::Xlsx => return workbook::xlsx(document),
        DocumentKind::Doc => DocumentFormat::Doc,
        DocumentKind::Docx => DocumentFormat::Docx,
        DocumentKind::Ppt => DocumentFormat::Ppt,
        DocumentKind::Pptx => DocumentFormat::Pptx,
    };
    let document = office_oxide::Document::from_reader_with(
        Cursor::new(document),
        format,
        &ParseOptions::default(),
    );
    let document = document.map_err(|error| WorkError::Broken(error.to_string()))?;
    // The shorter way leaves out what is said beside old slides, and their tables.
    Ok(if kind == DocumentKind::Ppt {
        document.to_ir().to_markdown()
    } else {
        document.to_markdown()
    })
}

fn pdf(document: &[u8]) -> Result<String, WorkError> {
    let read = unpdf::Unpdf::new()
        .sequential()
        .lenient()
        .with_images(false)
        .parse_bytes(document);
    read.and_then(|document| document.to_markdown())
        .map_err(|error| WorkError::Broken(error.to_string()))
}

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "recall_tests.rs"]
mod recall_tests;
