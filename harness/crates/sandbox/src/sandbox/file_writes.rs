//! Writes and edits of a thread's files, in blocking form.

use std::io::Write;

use super::blocking_files::{BlockingFiles, Occurrences, WriteMode};
use super::file_error::{FileError, FileFailure};
use super::pending_file::{Durability, PendingFile};
use super::safe_fs::{SHARED_DIR, SafeDir};
use super::virtual_paths::{RelativePath, VirtualPath};

impl BlockingFiles {
    /// Writes text and creates missing parent directories.
    ///
    /// # Errors
    /// [`FileFailure::WriteTooLong`], and as [`begin_write`](Self::begin_write). The file is
    /// unchanged on error.
    pub fn write_text(
        &self,
        path: &VirtualPath,
        content: &str,
        mode: WriteMode,
    ) -> Result<(), FileError> {
        let (bytes, limit) = (content.len() as u64, self.limits.max_write_bytes);
        if mode == WriteMode::Replace && limit != 0 && bytes > limit {
            return Err(FileFailure::WriteTooLong { bytes, limit }.at(path));
        }
        let _lock = self.lock(path)?;
        match mode {
            WriteMode::Replace => self.replace_whole(path, content.as_bytes(), Durability::Cached),
            WriteMode::Append => self.append(path, content.as_bytes()),
        }
        .map_err(|fault| fault.at(path))
    }

    /// Replaces a file with `content` and creates missing parent directories. The length is not
    /// limited.
    ///
    /// # Errors
    /// As [`begin_write`](Self::begin_write). The file is unchanged on error.
    pub fn write_bytes(
        &self,
        path: &VirtualPath,
        content: &[u8],
        durability: Durability,
    ) -> Result<(), FileError> {
        let _lock = self.lock(path)?;
        self.replace_whole(path, content, durability)
            .map_err(|fault| fault.at(path))
    }

    /// Starts a file whose content arrives in chunks, and creates missing parent directories.
    ///
    /// # Errors
    /// [`FileFailure::IsDirectory`], [`FileFailure::Symlink`], [`FileFailure::HardLinked`],
    /// [`FileFailure::NotRegular`], [`FileFailure::Permission`], [`FileFailure::NoSpace`],
    /// [`FileFailure::ReadOnly`] and other system errors.
    pub fn begin_write(&self, path: &VirtualPath) -> Result<PendingFile, FileError> {
        self.begin(path).map_err(|fault| fault.at(path))
    }

    /// Moves a file started by [`begin_write`](Self::begin_write) to its final name.
    ///
    /// # Errors
    /// As [`PendingFile::commit`].
    pub fn commit(
        &self,
        path: &VirtualPath,
        file: PendingFile,
        durability: Durability,
    ) -> Result<(), FileError> {
        let _lock = self.lock(path)?;
        file.commit(durability).map_err(|fault| fault.at(path))
    }

    /// Replaces text in a file and returns the number of replacements. An empty `old` matches
    /// nothing: the file is unchanged and the result is 0.
    ///
    /// # Errors
    /// [`FileFailure::TextNotFound`], and as [`read_text`](Self::read_text) and
    /// [`begin_write`](Self::begin_write).
    pub fn replace(
        &self,
        path: &VirtualPath,
        old: &str,
        new: &str,
        which: Occurrences,
    ) -> Result<usize, FileError> {
        let _lock = self.lock(path)?;
        self.edit(path, old, new, which)
            .map_err(|fault| fault.at(path))
    }

    /// Replaces the content of an existing text file if `is_expected` accepts the current content;
    /// returns `false` if it does not. The check and the write are atomic with respect to other
    /// writes of this process.
    ///
    /// # Errors
    /// As [`read_text`](Self::read_text) and [`begin_write`](Self::begin_write). The file is
    /// unchanged on error.
    pub fn replace_if(
        &self,
        path: &VirtualPath,
        content: &str,
        durability: Durability,
        is_expected: impl FnOnce(&str) -> bool,
    ) -> Result<bool, FileError> {
        let _lock = self.lock(path)?;
        let present = self.read_whole(path).map_err(|fault| fault.at(path))?;
        if !is_expected(&present) {
            return Ok(false);
        }
        self.replace_whole(path, content.as_bytes(), durability)
            .map_err(|fault| fault.at(path))?;
        Ok(true)
    }

    fn begin(&self, path: &VirtualPath) -> Result<PendingFile, FileFailure> {
        let (start, relative) = self.resolve_with_parents(path)?;
        start.begin_replace(&relative)
    }

    pub(super) fn replace_whole(
        &self,
        path: &VirtualPath,
        content: &[u8],
        durability: Durability,
    ) -> Result<(), FileFailure> {
        let mut pending = self.begin(path)?;
        pending.write(content)?;
        pending.commit(durability)
    }

    fn append(&self, path: &VirtualPath, content: &[u8]) -> Result<(), FileFailure> {
        let (start, relative) = self.resolve_with_parents(path)?;
        let (mut file, before) = start.open_append(&relative)?;
        let written = file.write_all(content);
        if written.is_err() {
            // A partial append must not remain: a retry would duplicate it.
            file.set_len(before.len())?;
        }
        Ok(written?)
    }

    fn edit(
        &self,
        path: &VirtualPath,
        old: &str,
        new: &str,
        which: Occurrences,
    ) -> Result<usize, FileFailure> {
        let content = self.read_whole(path)?;
        if old.is_empty() {
            return Ok(0);
        }
        let found = content.matches(old).count();
        let replaced = match which {
            Occurrences::First => found.min(1),
            Occurrences::All => found,
        };
        if replaced == 0 {
            return Err(FileFailure::TextNotFound);
        }
        let (removed, added) = (
            old.len().saturating_mul(replaced),
            new.len().saturating_mul(replaced),
        );
        let bytes = content.len().saturating_sub(removed).saturating_add(added) as u64;
        let limit = self.limits.max_text_bytes;
        if bytes > limit {
            return Err(FileFailure::TooLarge { bytes, limit });
        }
        let edited = content.replacen(old, new, replaced);
        self.replace_whole(path, edited.as_bytes(), Durability::Cached)?;
        Ok(replaced)
    }

    /// Resolves a path for writing and creates its missing parent directories.
    fn resolve_with_parents(
        &self,
        path: &VirtualPath,
    ) -> Result<(SafeDir, RelativePath), FileFailure> {
        let (start, relative) = self.resolve_for_write(path)?;
        let (parent, _) = relative.split_last().ok_or(FileFailure::IsDirectory)?;
        start.create_dirs(&parent, SHARED_DIR)?;
        Ok((start, relative))
    }
}
