//! Worker process of one document: it reads the document, drops its rights, and only then parses
//! it.

use std::io::{Cursor, Read, Write};

use office_oxide::DocumentFormat;
use office_oxide::options::ParseOptions;

use super::confine;
use super::kind::DocumentKind;
use super::reader::MAX_MARKDOWN_BYTES;
use super::work_error::MAX_DOCUMENT_BYTES;
use super::workbook;

pub use super::work_error::WorkError;

/// Reads a document from `input` and writes its Markdown to `output`. In between, the process
/// irrevocably drops its rights.
pub fn work(kind: DocumentKind, input: impl Read, mut output: impl Write) -> Result<(), WorkError> {
    let mut document = Vec::new();
    input
        .take(MAX_DOCUMENT_BYTES + 1)
        .read_to_end(&mut document)?;
    if document.len() as u64 > MAX_DOCUMENT_BYTES {
        return Err(WorkError::TooLarge);
    }
    confine::drop_privileges()?;
    let markdown = convert(kind, document)?;
    if markdown.len() as u64 >= MAX_MARKDOWN_BYTES {
        return Err(WorkError::TooLong);
    }
    output.write_all(markdown.as_bytes())?;
    Ok(output.flush()?)
}

/// Converts a document to Markdown.
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
    // The direct conversion omits speaker notes and tables of old slides.
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
