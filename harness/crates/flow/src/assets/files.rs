//! Port to the files of a project, and its implementation in memory.

use std::collections::BTreeMap;
use std::io;

/// Maximum bytes of one file.
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Maximum entries of one folder.
pub const MAX_FOLDER_ENTRIES: usize = 1_000;

/// Entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AssetEntry {
    /// Name without a path.
    pub name: String,
    /// `true` if it is a folder.
    pub is_folder: bool,
}

/// Files of a project. Paths are relative to its root with `/` between names. Calls block: callers
/// in asynchronous code announce them as long computations.
pub trait AssetFiles {
    /// Returns the entries of a folder in any order; `None` if there is no such folder.
    ///
    /// # Errors
    /// The folder cannot be read or has too many entries.
    fn list(&self, folder: &str) -> io::Result<Option<Vec<AssetEntry>>>;

    /// Returns the text of a file.
    ///
    /// # Errors
    /// The file cannot be read, is too large, or is not UTF-8.
    fn read(&self, path: &str) -> io::Result<String>;
}

/// Files in memory, by path: for tests and archives.
#[derive(Debug, Clone, Default)]
pub struct MemoryAssets(BTreeMap<String, String>);

impl MemoryAssets {
    /// Creates a project of these files.
    pub fn new<P: Into<String>, T: Into<String>>(files: impl IntoIterator<Item = (P, T)>) -> Self {
        let files = files.into_iter();
        Self(
            files
                .map(|(path, text)| (path.into(), text.into()))
                .collect(),
        )
    }
}

impl AssetFiles for MemoryAssets {
    fn list(&self, folder: &str) -> io::Result<Option<Vec<AssetEntry>>> {
        let prefix = match folder {
            "" => String::new(),
            folder => format!("{folder}/"),
        };
        let mut entries: Vec<AssetEntry> = self
            .0
            .keys()
            .filter_map(|path| path.strip_prefix(&prefix))
            .map(|below| match below.split_once('/') {
                Some((name, _)) => (name, true),
                None => (below, false),
            })
            .map(|(name, is_folder)| AssetEntry {
                name: name.to_owned(),
                is_folder,
            })
            .collect();
        entries.dedup();
        if entries.len() > MAX_FOLDER_ENTRIES {
            return Err(too_many_entries());
        }
        Ok((!entries.is_empty()).then_some(entries))
    }

    fn read(&self, path: &str) -> io::Result<String> {
        let text = self.0.get(path).ok_or(io::ErrorKind::NotFound)?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(too_large());
        }
        Ok(text.clone())
    }
}

pub(super) fn too_many_entries() -> io::Error {
    io::Error::other(format!(
        "the folder has more than {MAX_FOLDER_ENTRIES} entries"
    ))
}

pub(super) fn too_large() -> io::Error {
    io::Error::other(format!("the file has more than {MAX_FILE_BYTES} bytes"))
}
