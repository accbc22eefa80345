//! Builds archives of text files.

use std::io::{Cursor, Write};

use zip::ZipWriter;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;

use super::unpack::TextFile;

/// Returns a ZIP archive of these files. Equal files give equal bytes.
///
/// # Errors
/// If a path is repeated or too long.
pub fn pack(files: &[TextFile]) -> Result<Vec<u8>, PackError> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for file in files {
        writer.start_file(file.path.as_str(), SimpleFileOptions::default())?;
        writer
            .write_all(file.text.as_bytes())
            .map_err(ZipError::from)?;
    }
    Ok(writer.finish()?.into_inner())
}

/// An archive cannot be built.
#[derive(Debug, thiserror::Error)]
#[error("cannot build the archive: {0}")]
pub struct PackError(#[from] ZipError);
