//! Reserve of disk space: a file of allocated blocks beside the database, given up when the disk is full.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

/// The name of the file.
pub(crate) const RESERVE_FILE: &str = "deerflow.reserve";
/// Written at once where blocks cannot be allocated without writing.
const CHUNK: usize = 1 << 20;

/// The file and what it holds. All methods block on the disk.
#[derive(Debug)]
pub(crate) struct Reserve {
    path: PathBuf,
    size: u64,
    held: u64,
}

impl Reserve {
    /// The reserve in `directory`, of `size` bytes when whole, with what a former process left of it. A size of 0 removes the file.
    pub(crate) fn open(directory: &Path, size: u64) -> io::Result<Self> {
        let mut reserve = Self {
            path: directory.join(RESERVE_FILE),
            size,
            held: 0,
        };
        match std::fs::metadata(&reserve.path) {
            Ok(_) if size == 0 => std::fs::remove_file(&reserve.path)?,
            // A file of a certain length may still be without blocks.
            Ok(found) => reserve.held = (found.blocks() * 512).min(found.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        if reserve.held > size {
            reserve.hold(size, 0)?;
        }
        Ok(reserve)
    }

    /// Bytes that it has when it is whole.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Bytes that it holds.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// Bytes that this process could still write to the same file system.
    pub(crate) fn free(&self) -> io::Result<u64> {
        let found = statvfs(self.directory())?;
        if found.f_blocks == 0 {
            // It does not count its blocks; only a write can tell.
            return Ok(u64::MAX >> 1);
        }
        // What is kept for the superuser is of no use to others.
        let blocks = if rustix::process::geteuid().is_root() {
            found.f_bfree
        } else {
            found.f_bavail
        };
        Ok(blocks.saturating_mul(found.f_frsize))
    }

    /// Makes it hold `bytes`, provided that `spare` bytes more could be allocated at the same time. Changes nothing on an error.
    pub(crate) fn hold(&mut self, bytes: u64, spare: u64) -> io::Result<()> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&self.path)?;
        if let Err(error) = allocate(&file, bytes + spare) {
            file.set_len(self.held)?;
            return Err(error);
        }
        file.set_len(bytes)?;
        file.sync_all()?;
        self.held = bytes;
        Ok(())
    }

    /// Gives its blocks back to the file system. Returns whether it held any.
    pub(crate) fn release(&mut self) -> io::Result<bool> {
        let held = std::mem::take(&mut self.held);
        match OpenOptions::new().write(true).open(&self.path) {
            Ok(file) => {
                file.set_len(0)?;
                // Some file systems hand freed blocks out only after their own commit.
                file.sync_all()?;
                Ok(held > 0)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Tries whether `bytes` can be allocated, and gives them back at once.
    pub(crate) fn try_out(&self, bytes: u64) -> io::Result<()> {
        allocate(&tempfile::tempfile_in(self.directory())?, bytes)
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }
}

/// Has the file system give blocks to the first `bytes` of `file`.
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => fill(file, bytes),
        other => Ok(other?),
    }
}

fn fill(mut file: &File, bytes: u64) -> io::Result<()> {
    let zeros = vec![0; CHUNK];
    let mut left = bytes;
    while left > 0 {
        let now = usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK));
        file.write_all(&zeros[..now])?;
        left -= now as u64;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 1 << 20;

    fn blocks(directory: &Path) -> u64 {
        std::fs::metadata(directory.join(RESERVE_FILE))
            .unwrap()
            .blocks()
            * 512
    }

    #[test]
    fn a_reserve_takes_blocks_and_gives_them_back() {
        let directory = tempfile::tempdir().unwrap();
        let mut reserve = Reserve::open(directory.path(), SIZE).unwrap();
        assert!(reserve.free().unwrap() > 0);
        reserve.hold(SIZE, SIZE).unwrap();
        assert!(blocks(directory.path()) >= SIZE);
        assert_eq!(Reserve::open(directory.path(), SIZE).unwrap().held(), SIZE);
        assert_eq!(
            Reserve::open(directory.path(), SIZE / 2).unwrap().held(),
            SIZE / 2
        );
        assert!(reserve.release().unwrap());
        assert_eq!((blocks(directory.path()), reserve.held()), (0, 0));
        assert!(!reserve.release().unwrap());
        Reserve::open(directory.path(), 0).unwrap();
        assert!(!directory.path().join(RESERVE_FILE).exists());
    }

    #[test]
    fn more_than_there_is_cannot_be_held() {
        let directory = tempfile::tempdir().unwrap();
        let mut reserve = Reserve::open(directory.path(), SIZE).unwrap();
        reserve.hold(SIZE, 0).unwrap();
        let beyond = reserve.free().unwrap() + (64 << 30);
        assert!(reserve.hold(beyond, 0).is_err());
        assert!(reserve.try_out(beyond).is_err());
        assert_eq!(
            (
                reserve.held(),
                std::fs::metadata(directory.path().join(RESERVE_FILE))
                    .unwrap()
                    .len()
            ),
            (SIZE, SIZE)
        );
    }

    #[test]
    fn blocks_are_written_where_they_cannot_be_allocated() {
        let file = tempfile::tempfile().unwrap();
        fill(&file, SIZE + 5).unwrap();
        assert_eq!(file.metadata().unwrap().len(), SIZE + 5);
    }
}
