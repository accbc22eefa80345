//! A file in the making that becomes visible whole or not at all.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::fault::Fault;
use super::safe_fs::{NEW_FILE, SafeDir, check_replaceable};
use crate::runtime::fail_points;

/// Whether a finished write must outlast a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The operating system may keep it in memory for a while.
    Cached,
    /// It is on the disk when the call returns.
    Synced,
}

/// A new file beside its target, under a name that listings leave out.
///
/// [`commit`](Self::commit) puts it in the target's place in one step; dropped before that, it disappears.
#[derive(Debug)]
pub struct PendingFile {
    dir: SafeDir,
    target: String,
    temporary: String,
    file: File,
    committed: bool,
}

impl PendingFile {
    pub(super) fn create(dir: SafeDir, target: &str) -> Result<Self, Fault> {
        let mode = match dir.stat_name(target) {
            Ok(stat) => {
                check_replaceable(&stat)?;
                Some(Mode::from_raw_mode(stat.st_mode & 0o777))
            }
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(errno.into()),
        };
        let (temporary, file) = create_temporary(&dir)?;
        let pending = Self {
            dir,
            target: target.to_owned(),
            temporary,
            file,
            committed: false,
        };
        if let Some(mode) = mode {
            rustix::fs::fchmod(&pending.file, mode)?;
        }
        Ok(pending)
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// [`Fault::NoSpace`] and what else the system reports.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        Ok(self.file.write_all(bytes)?)
    }

    /// Does all of [`commit`](Self::commit) that can be done before the file appears.
    ///
    /// # Errors
    /// As there.
    pub fn settle(&self) -> Result<(), Fault> {
        self.file.sync_all()?;
        self.check_target()
    }

    fn check_target(&self) -> Result<(), Fault> {
        match self.dir.stat_name(self.target.as_str()) {
            Ok(stat) => check_replaceable(&stat),
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Puts the file in its target's place.
    ///
    /// # Errors
    /// As for creation, when the target has changed meanwhile, and what the system reports.
    /// The target is then as it was.
    pub fn commit(mut self, durability: Durability) -> Result<(), Fault> {
        if durability == Durability::Synced {
            self.file.sync_all()?;
        }
        fail_points::pass("file.written");
        self.check_target()?;
        // Whatever takes the target's name in this moment is replaced itself: a rename follows no link.
        rustix::fs::renameat(
            &self.dir,
            self.temporary.as_str(),
            &self.dir,
            self.target.as_str(),
        )?;
        self.committed = true;
        fail_points::pass("file.renamed");
        if durability == Durability::Synced {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::fsync(rustix::fs::openat(&self.dir, ".", flags, Mode::empty())?)?;
        }
        Ok(())
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if self.committed {
            return;
        }
        match rustix::fs::unlinkat(&self.dir, self.temporary.as_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => {
                tracing::warn!(%errno, name = self.temporary, "an unfinished file could not be removed")
            }
        }
    }
}

/// Another process, or an earlier life of this one, may have left files of the same name: the next number is free.
fn create_temporary(dir: &SafeDir) -> Result<(String, File), Fault> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    const MAX_TRIES: usize = 10_000;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..MAX_TRIES {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".upload-{}-{number}.part", std::process::id());
        match retry_on_intr(|| rustix::fs::openat(dir, name.as_str(), flags, NEW_FILE)) {
            Ok(fd) => return Ok((name, File::from(fd))),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(Errno::EXIST.into())
}
