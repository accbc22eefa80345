//! Reserve of disk space: a file of allocated blocks next to the database, released when the disk
//! is full.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

/// Name of the reserve file.
pub(crate) const RESERVE_FILE: &str = "deerflow.reserve";
/// Bytes written at once if blocks cannot be allocated without writing.
const CHUNK: usize = 1 << 20;

/// The reserve file and its current size. All methods block on the disk.
#[derive(Debug)]
pub(crate) struct Reserve {
    path: PathBuf,
    size: u64,
    reserved: u64,
}

impl Reserve {
    /// Opens the reserve in `directory`, of `size` bytes when full. Blocks that an earlier process
    /// allocated are reused. A size of 0 removes the file.
    pub(crate) fn open(directory: &Path, size: u64) -> io::Result<Self> {
        let mut reserve = Self {
            path: directory.join(RESERVE_FILE),
            size,
            reserved: 0,
        };
        match std::fs::metadata(&reserve.path) {
            Ok(_) if size == 0 => std::fs::remove_file(&reserve.path)?,
            // A sparse file has a length without blocks.
            Ok(found) => reserve.reserved = (found.blocks() * 512).min(found.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        if reserve.reserved > size {
            reserve.hold(size, 0)?;
        }
        Ok(reserve)
    }

    /// Returns the size of the full reserve, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the reserved bytes.
    pub(crate) fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Returns the bytes that this process could still write to the same file system.
    pub(crate) fn free(&self) -> io::Result<u64> {
        free_bytes(self.directory())
    }

    /// Resizes the reserve to `bytes`, if `spare` more bytes could be allocated at the same time.
    /// On an error the reserve is unchanged.
    pub(crate) fn hold(&mut self, bytes: u64, spare: u64) -> io::Result<()> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&self.path)?;
        let additional = (bytes + spare).saturating_sub(self.reserved);
        if let Err(error) = self
            .check_free(additional)
            .and_then(|()| allocate(&file, bytes + spare))
        {
            file.set_len(self.reserved)?;
            return Err(error);
        }
        file.set_len(bytes)?;
        file.sync_all()?;
        self.reserved = bytes;
        Ok(())
    }

    /// Releases the blocks to the file system. Returns `true` if there were any.
    pub(crate) fn release(&mut self) -> io::Result<bool> {
        let reserved = std::mem::take(&mut self.reserved);
        match OpenOptions::new().write(true).open(&self.path) {
            Ok(file) => {
                file.set_len(0)?;
                // Some file systems reuse freed blocks only after their own commit.
                file.sync_all()?;
                Ok(reserved > 0)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Checks that `bytes` can be allocated, and releases them at once.
    pub(crate) fn try_allocate(&self, bytes: u64) -> io::Result<()> {
        self.check_free(bytes)?;
        allocate(&tempfile::tempfile_in(self.directory())?, bytes)
    }

    /// Fails if the file system has fewer than `bytes` free. An allocation that fails half-way would
    /// take the last blocks from all other writers until it is undone.
    fn check_free(&self, bytes: u64) -> io::Result<()> {
        if bytes > self.free()? {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }
}

/// Returns the bytes that this process could still write to the file system of `directory`.
pub(crate) fn free_bytes(directory: &Path) -> io::Result<u64> {
    let found = statvfs(directory)?;
    if found.f_blocks == 0 {
        // The file system does not count blocks; only a write can show whether it is full.
        return Ok(u64::MAX >> 1);
    }
    // Blocks reserved for the superuser are not available to other users.
    let blocks = if rustix::process::geteuid().is_root() {
        found.f_bfree
    } else {
        found.f_bavail
    };
    Ok(blocks.saturating_mul(found.f_frsize))
}

/// Allocates blocks for the first `bytes` of `file`.
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
    let mut remaining = bytes;
    while remaining > 0 {
        let now = usize::try_from(remaining).map_or(CHUNK, |remaining| remaining.min(CHUNK));
        file.write_all(&zeros[..now])?;
        remaining -= now as u64;
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
    fn reserve_allocates_and_releases_blocks() {
        let directory = tempfile::tempdir().unwrap();
        let mut reserve = Reserve::open(directory.path(), SIZE).unwrap();
        assert!(reserve.free().unwrap() > 0);
        reserve.hold(SIZE, SIZE).unwrap();
        assert!(blocks(directory.path()) >= SIZE);
        assert_eq!(
            Reserve::open(directory.path(), SIZE).unwrap().reserved(),
            SIZE
        );
        assert_eq!(
            Reserve::open(directory.path(), SIZE / 2)
                .unwrap()
                .reserved(),
            SIZE / 2
        );
        assert!(reserve.release().unwrap());
        assert_eq!((blocks(directory.path()), reserve.reserved()), (0, 0));
        assert!(!reserve.release().unwrap());
        Reserve::open(directory.path(), 0).unwrap();
        assert!(!directory.path().join(RESERVE_FILE).exists());
    }

    #[test]
    fn reserve_beyond_free_space_fails() {
        let directory = tempfile::tempdir().unwrap();
        let mut reserve = Reserve::open(directory.path(), SIZE).unwrap();
        reserve.hold(SIZE, 0).unwrap();
        let beyond = reserve.free().unwrap() + (64 << 30);
        assert!(reserve.hold(beyond, 0).is_err());
        assert!(reserve.try_allocate(beyond).is_err());
        assert_eq!(
            (
                reserve.reserved(),
                std::fs::metadata(directory.path().join(RESERVE_FILE))
                    .unwrap()
                    .len()
            ),
            (SIZE, SIZE)
        );
    }

    #[test]
    fn fill_writes_all_bytes() {
        let file = tempfile::tempfile().unwrap();
        fill(&file, SIZE + 5).unwrap();
        assert_eq!(file.metadata().unwrap().len(), SIZE + 5);
    }
}
