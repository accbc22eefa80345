//! Files of a project folder on disk.

use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use super::files::{AssetEntry, AssetFiles, MAX_FILE_BYTES, MAX_FOLDER_ENTRIES};
use super::files::{too_large, too_many_entries};

/// A project folder. Symbolic links that lead out of it are not followed.
#[derive(Debug, Clone)]
pub struct FolderAssets {
    root: PathBuf,
}

impl FolderAssets {
    /// Opens a project folder.
    ///
    /// # Errors
    /// The folder does not exist or cannot be read.
    pub fn open(root: &Path) -> io::Result<Self> {
        Ok(Self {
            root: root.canonicalize()?,
        })
    }

    /// Returns the real path of a path in the project.
    fn resolve(&self, path: &str) -> io::Result<PathBuf> {
        let relative = Path::new(path);
        let is_plain = |component| matches!(component, Component::Normal(_));
        if !relative.components().all(is_plain) {
            return Err(leads_out());
        }
        let real = self.root.join(relative).canonicalize()?;
        if real.starts_with(&self.root) {
            Ok(real)
        } else {
            Err(leads_out())
        }
    }
}

impl AssetFiles for FolderAssets {
    fn list(&self, folder: &str) -> io::Result<Option<Vec<AssetEntry>>> {
        let path = match self.resolve(folder) {
            Ok(path) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if !path.is_dir() {
            return Ok(None);
        }
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            // A name that is not UTF-8 cannot be written in a flow.
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if entries.len() == MAX_FOLDER_ENTRIES {
                return Err(too_many_entries());
            }
            let is_folder = match entry.file_type()? {
                kind if kind.is_symlink() => self
                    .resolve(&format!("{folder}/{name}"))
                    .is_ok_and(|target| target.is_dir()),
                kind => kind.is_dir(),
            };
            entries.push(AssetEntry { name, is_folder });
        }
        Ok(Some(entries))
    }

    fn read(&self, path: &str) -> io::Result<String> {
        let path = self.resolve(path)?;
        // A pipe or device could block for ever.
        if !fs::metadata(&path)?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let mut text = String::new();
        let mut file = fs::File::open(path)?.take(MAX_FILE_BYTES + 1);
        file.read_to_string(&mut text)?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(too_large());
        }
        Ok(text)
    }
}

fn leads_out() -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        "the path leads out of the project",
    )
}
