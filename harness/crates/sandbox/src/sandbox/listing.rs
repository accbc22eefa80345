//! Directory listings for a model.

use super::blocking_files::BlockingFiles;
use super::file_error::{FileError, FileFailure};
use super::ignore::is_ignored;
use super::resolve::SearchStart;
use super::safe_fs::{NodeKind, SafeDir};
use super::virtual_paths::{VirtualPath, is_misleading_char};

/// Content of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Sorted virtual paths; those of directories end with `/`.
    pub lines: Vec<String>,
    /// `true` if entries were omitted because of the limit.
    pub incomplete: bool,
}

impl BlockingFiles {
    /// Lists a directory and its descendants down to `depth` levels, without
    /// [ignored](super::ignore) names. A root that was never written to is empty.
    ///
    /// # Errors
    /// [`FileFailure::NotFound`], [`FileFailure::NotDirectory`], [`FileFailure::Symlink`] and
    /// system errors.
    pub fn list(&self, path: &VirtualPath, depth: usize) -> Result<Listing, FileError> {
        Listing::of(
            &self.search_starts(path)?,
            path,
            depth,
            self.limits.max_entries,
        )
        .map_err(|f| f.at(path))
    }
}

impl Listing {
    /// Lists `depth` levels below `path` and reads at most `max_entries` entries.
    ///
    /// Links and special files are listed but not followed. Names that no virtual path can express
    /// are listed in escaped form, so that the model knows that they exist.
    fn of(
        search_starts: &[SearchStart],
        path: &VirtualPath,
        depth: usize,
        max_entries: usize,
    ) -> Result<Self, FileFailure> {
        let mut listing = Self::default();
        let mut budget = max_entries;
        for SearchStart {
            relative,
            directory,
        } in search_starts
        {
            let mut display_path = path.to_string();
            let mut remaining = depth;
            for name in relative.components().take(depth) {
                display_path = format!("{display_path}/{name}");
                listing.lines.push(format!("{display_path}/"));
                remaining -= 1;
            }
            listing.add(directory, &display_path, remaining, &mut budget)?;
        }
        listing.lines.sort_unstable();
        listing.lines.dedup();
        Ok(listing)
    }

    fn add(
        &mut self,
        directory: &SafeDir,
        parent_path: &str,
        depth: usize,
        budget: &mut usize,
    ) -> Result<(), FileFailure> {
        if depth == 0 {
            return Ok(());
        }
        let (entries, more) = directory.entries(*budget)?;
        self.incomplete |= more;
        *budget -= entries.len();
        for entry in entries {
            let name = entry.name.to_string_lossy();
            if is_ignored(&name) {
                continue;
            }
            let display_path = format!("{parent_path}/{}", one_line(&name));
            if entry.kind != NodeKind::Directory {
                self.lines.push(display_path);
                continue;
            }
            let below = directory
                .enter(&entry.name)
                .and_then(|inner| self.add(&inner, &display_path, depth - 1, budget));
            match below {
                // An entry that vanished, became a link or cannot be read is still listed.
                Ok(())
                | Err(
                    FileFailure::NotFound
                    | FileFailure::NotDirectory
                    | FileFailure::Symlink
                    | FileFailure::Permission,
                ) => {}
                Err(fault) => return Err(fault),
            }
            self.lines.push(display_path + "/");
        }
        Ok(())
    }
}

/// Escapes the characters of a name or path that would break or disguise its line.
pub(super) fn one_line(name: &str) -> String {
    name.chars()
        .fold(String::with_capacity(name.len()), |mut display_path, c| {
            if is_misleading_char(c) {
                display_path.extend(c.escape_default());
            } else {
                display_path.push(c);
            }
            display_path
        })
}
