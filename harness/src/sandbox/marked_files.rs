//! Files that this program makes beside those of users, told from them by the mark that they begin with.

use std::io::Read;

use super::blocking_files::BlockingFiles;
use super::fault::{Fault, FileError};
use super::pending_file::Durability;
use super::virtual_paths::VirtualPath;

impl BlockingFiles {
    /// Whether a file is there that begins with `mark`.
    ///
    /// # Errors
    /// What the system reports.
    pub fn is_marked(&self, path: &VirtualPath, mark: &str) -> Result<bool, FileError> {
        Ok(self.mark_of(path, mark)? == Some(true))
    }

    /// Writes bytes that begin with `mark`, unless something is there that does not: `false` then. No other write through these
    /// files comes between the look and the write.
    ///
    /// # Errors
    /// As [`begin_write`](Self::begin_write).
    pub fn write_marked(
        &self,
        path: &VirtualPath,
        mark: &str,
        content: &[u8],
    ) -> Result<bool, FileError> {
        let _turn = self.lock(path)?;
        if self.mark_of(path, mark)? == Some(false) {
            return Ok(false);
        }
        self.replace_whole(path, content, Durability::Synced)
            .map_err(|fault| fault.at(path))?;
        Ok(true)
    }

    /// Removes a file that begins with `mark`; `false` when there is none.
    ///
    /// # Errors
    /// What the system reports.
    pub fn remove_marked(&self, path: &VirtualPath, mark: &str) -> Result<bool, FileError> {
        let _turn = self.lock(path)?;
        if self.mark_of(path, mark)? != Some(true) {
            return Ok(false);
        }
        self.dirs
            .open(path.root())
            .and_then(|root| root.remove_file(path.relative()))
            .map_err(|fault| fault.at(path))?;
        Ok(true)
    }

    /// Whether what is there begins with `mark`; nothing where nothing is.
    fn mark_of(&self, path: &VirtualPath, mark: &str) -> Result<Option<bool>, FileError> {
        let file = match self.open_read(path) {
            Ok((file, _)) => file,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error)
                if matches!(
                    error.fault(),
                    Some(
                        Fault::IsDirectory | Fault::Symlink | Fault::NotRegular | Fault::Permission
                    )
                ) =>
            {
                return Ok(Some(false));
            }
            Err(error) => return Err(error),
        };
        let mut beginning = Vec::with_capacity(mark.len());
        file.take(mark.len() as u64)
            .read_to_end(&mut beginning)
            .map_err(|error| Fault::from(error).at(path))?;
        Ok(Some(beginning == mark.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocking_files::WriteMode;
    use super::super::safe_fs::Resolver;
    use super::super::test_support::{Place, work};

    const MARK: &str = "<!-- made -->";

    #[test]
    fn only_what_has_the_mark_is_replaced_or_removed() {
        let place = Place::new(Resolver::detect());
        let (files, made) = (place.files.blocking(), work("a.md"));
        assert!(
            !files.is_marked(&made, MARK).unwrap() && !files.remove_marked(&made, MARK).unwrap()
        );
        assert!(files.write_marked(&made, MARK, b"<!-- made -->1").unwrap());
        assert!(
            files.write_marked(&made, MARK, b"<!-- made -->2").unwrap()
                && files.is_marked(&made, MARK).unwrap()
        );
        assert_eq!(files.read_bytes(&made, 99).unwrap(), b"<!-- made -->2");
        assert!(files.remove_marked(&made, MARK).unwrap());
        assert_eq!(files.stat(&made).unwrap(), None);

        for own in ["", "<!--", "# Mine", " <!-- made -->"] {
            files.write_text(&made, own, WriteMode::Replace).unwrap();
            assert!(!files.is_marked(&made, MARK).unwrap(), "{own:?}");
            assert!(
                !files.write_marked(&made, MARK, b"<!-- made -->3").unwrap(),
                "{own:?}"
            );
            assert!(!files.remove_marked(&made, MARK).unwrap(), "{own:?}");
            assert_eq!(files.read_bytes(&made, 99).unwrap(), own.as_bytes());
        }
        files
            .write_text(&work("d.md/x"), "x", WriteMode::Replace)
            .unwrap();
        std::os::unix::fs::symlink(
            place.outside().join("secret.txt"),
            place.workspace().join("l.md"),
        )
        .unwrap();
        for other in ["d.md", "l.md"].map(work) {
            assert!(
                !files.write_marked(&other, MARK, b"<!-- made -->").unwrap()
                    && !files.remove_marked(&other, MARK).unwrap()
            );
        }
        place.assert_outside_is_untouched();
    }
}
