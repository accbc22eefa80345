//! Sizes of files.

use std::path::Path;

/// Returns the size of all files below a folder in bytes.
pub(super) fn size_of(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let file = entry.metadata()?;
        bytes += if file.is_dir() {
            size_of(&entry.path())?
        } else {
            file.len()
        };
    }
    Ok(bytes)
}
