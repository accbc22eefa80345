//! Opens files beneath a directory handle, so that no change on the disk can redirect the access.
//!
//! An agent controls the directories that these functions traverse and may replace a directory by a
//! link at any moment. So a path is never checked first and opened later. One kernel call opens the
//! path, with the rules that no link is followed and that the path stays beneath the start; the
//! opened file is then examined through its handle.

use std::ffi::CString;
use std::fs::{File, Metadata};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

use super::file_error::FileFailure;
use super::virtual_paths::RelativePath;

/// Mode of the directories that contain one user's data: no access for other accounts of the host.
pub const PRIVATE_DIR: Mode = Mode::RWXU;

/// Mode of the directories that an agent works in.
pub const SHARED_DIR: Mode = Mode::from_raw_mode(0o755);

/// Mode of a new file.
pub(super) const NEW_FILE: Mode = Mode::from_raw_mode(0o644);

/// Flags for opening a directory only to traverse it.
#[cfg(target_os = "linux")]
const REACH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
#[cfg(not(target_os = "linux"))]
const REACH: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Flags of every open: never follow a final link, never leak to a child process. The second set:
/// never block on a FIFO, never acquire a terminal.
const ALWAYS: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);
const NEVER_BLOCK: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

/// Mechanism that confines a path to its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolver {
    /// The kernel, in one `openat2` call.
    Kernel,
    /// This program, opening one component after the other without following links: for kernels
    /// before 5.6, other systems, and containers whose seccomp filter denies `openat2`.
    Walk,
}

impl Resolver {
    /// Returns the best resolver that works on this system.
    pub fn detect() -> Self {
        let probe = beneath(rustix::fs::CWD, ".", REACH | ALWAYS, Mode::empty());
        if probe.is_ok() {
            Self::Kernel
        } else {
            Self::Walk
        }
    }
}

/// An open directory. All files opened through it are beneath it.
#[derive(Debug)]
pub struct SafeDir {
    fd: OwnedFd,
    resolver: Resolver,
}

/// Kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, FIFO, socket or device: listed, never opened.
    Other,
}

/// One directory entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Name as reported by the system; may not be UTF-8.
    pub name: CString,
    /// Kind of the entry.
    pub kind: NodeKind,
}

impl SafeDir {
    /// Opens a directory named by the operator; its path may contain links.
    ///
    /// # Errors
    /// System errors.
    pub fn open_trusted(path: &Path, resolver: Resolver) -> Result<Self, FileFailure> {
        let flags = REACH | OFlags::CLOEXEC;
        let fd = retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))?;
        Ok(Self { fd, resolver })
    }

    /// Opens a directory beneath this one.
    ///
    /// # Errors
    /// [`FileFailure::NotFound`], [`FileFailure::Symlink`], [`FileFailure::NotDirectory`] and
    /// system errors.
    pub fn open_dir(&self, path: &RelativePath) -> Result<Self, FileFailure> {
        let fd = self.open(path, REACH, Mode::empty())?;
        Ok(Self {
            fd,
            resolver: self.resolver,
        })
    }

    /// Opens a directory beneath this one and creates it and its parents if missing.
    ///
    /// # Errors
    /// As [`open_dir`](Self::open_dir), and system errors of the creation.
    pub fn create_dirs(&self, path: &RelativePath, mode: Mode) -> Result<Self, FileFailure> {
        match self.open_dir(path) {
            Err(FileFailure::NotFound) => {}
            opened => return opened,
        }
        let mut reached = self.open_dir(&RelativePath::default())?;
        for name in path.components() {
            match rustix::fs::mkdirat(&reached.fd, name, mode) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
            let fd = step_into(&reached.fd, name)?;
            reached = Self {
                fd,
                resolver: self.resolver,
            };
        }
        Ok(reached)
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// As [`open_dir`](Self::open_dir), [`FileFailure::IsDirectory`], [`FileFailure::NotRegular`].
    pub fn open_read(&self, path: &RelativePath) -> Result<(File, Metadata), FileFailure> {
        let fd = self.open(path, OFlags::RDONLY | NEVER_BLOCK, Mode::empty())?;
        only_regular(fd)
    }

    /// Opens a regular file for appending and creates it if missing.
    ///
    /// # Errors
    /// As [`open_read`](Self::open_read), and [`FileFailure::HardLinked`].
    pub fn open_append(&self, path: &RelativePath) -> Result<(File, Metadata), FileFailure> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | NEVER_BLOCK;
        let fd = self.open(path, flags, NEW_FILE)?;
        check_replaceable(&rustix::fs::fstat(&fd)?)?;
        only_regular(fd)
    }

    /// Returns the metadata of `path` without opening or following it.
    ///
    /// # Errors
    /// As [`open_dir`](Self::open_dir); a link at the end of the path is [`FileFailure::Symlink`].
    pub fn stat(&self, path: &RelativePath) -> Result<Stat, FileFailure> {
        let stat = match path.split_last() {
            None => rustix::fs::fstat(&self.fd)?,
            Some((parent, name)) => self.open_dir(&parent)?.stat_name(name)?,
        };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            return Err(FileFailure::Symlink);
        }
        Ok(stat)
    }

    /// Removes a file; a link is removed, not its target.
    ///
    /// # Errors
    /// As [`open_dir`](Self::open_dir), [`FileFailure::IsDirectory`].
    pub fn remove_file(&self, path: &RelativePath) -> Result<(), FileFailure> {
        let (parent, name) = path.split_last().ok_or(FileFailure::IsDirectory)?;
        let parent = self.open_dir(&parent)?;
        Ok(rustix::fs::unlinkat(&parent.fd, name, AtFlags::empty())?)
    }

    /// Returns at most `limit` entries of this directory, unsorted, and whether there are more.
    ///
    /// # Errors
    /// System errors.
    pub fn entries(&self, limit: usize) -> Result<(Vec<Entry>, bool), FileFailure> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let readable = retry_on_intr(|| rustix::fs::openat(&self.fd, ".", flags, Mode::empty()))?;
        let mut entries = Vec::new();
        for entry in Dir::new(readable)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if entries.len() == limit {
                return Ok((entries, true));
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(stat) => FileType::from_raw_mode(stat.st_mode).into(),
                        Err(Errno::NOENT) => continue,
                        Err(errno) => return Err(errno.into()),
                    }
                }
                known => known.into(),
            };
            entries.push(Entry {
                name: name.to_owned(),
                kind,
            });
        }
        Ok((entries, false))
    }

    /// Opens a direct subdirectory by its raw name, or this directory again by `.`.
    pub(super) fn enter(&self, name: &CString) -> Result<Self, FileFailure> {
        let fd = step_into(&self.fd, name.as_c_str())?;
        Ok(Self {
            fd,
            resolver: self.resolver,
        })
    }

    /// Opens a regular file of this directory by its raw name. `None` if the name was removed or
    /// replaced by something else.
    pub(super) fn open_regular(&self, name: &CString) -> Result<Option<File>, FileFailure> {
        let flags = OFlags::RDONLY | ALWAYS | NEVER_BLOCK;
        let opened =
            retry_on_intr(|| rustix::fs::openat(&self.fd, name.as_c_str(), flags, Mode::empty()));
        let file = match opened {
            Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
            opened => File::from(opened?),
        };
        Ok(file.metadata()?.is_file().then_some(file))
    }

    /// Restores the owner's permissions on this directory, which a command may have removed.
    pub(super) fn restore_owner_access(&self) -> Result<(), FileFailure> {
        let mode = Mode::from_raw_mode(rustix::fs::fstat(&self.fd)?.st_mode);
        if mode.contains(Mode::RWXU) {
            return Ok(());
        }
        Ok(change_mode(&self.fd, mode | Mode::RWXU)?)
    }

    /// Returns the metadata of an entry of this directory; links are not followed.
    pub(super) fn stat_name(&self, name: impl rustix::path::Arg) -> Result<Stat, Errno> {
        rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    fn open(&self, path: &RelativePath, flags: OFlags, mode: Mode) -> Result<OwnedFd, FileFailure> {
        let flags = flags | ALWAYS;
        if self.resolver == Resolver::Walk {
            return walk(&self.fd, path, flags, mode);
        }
        let target = if path.is_empty() { "." } else { path.as_str() };
        match beneath(&self.fd, target, flags, mode) {
            // The kernel reports a link in place of a directory like a file; the walk distinguishes
            // them.
            Err(Errno::NOTDIR) => walk(&self.fd, path, flags, mode),
            Err(Errno::XDEV) => Err(FileFailure::Symlink),
            opened => Ok(opened?),
        }
    }
}

impl AsFd for SafeDir {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<FileType> for NodeKind {
    fn from(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            _ => Self::Other,
        }
    }
}

/// Rejects all file types except a regular, writable file with a single hard link.
pub(super) fn check_replaceable(stat: &Stat) -> Result<(), FileFailure> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_nlink > 1 => Err(FileFailure::HardLinked),
        FileType::RegularFile if stat.st_mode & 0o222 == 0 => Err(FileFailure::Permission),
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(FileFailure::IsDirectory),
        FileType::Symlink => Err(FileFailure::Symlink),
        _ => Err(FileFailure::NotRegular),
    }
}

#[cfg(target_os = "linux")]
fn beneath(start: impl AsFd, path: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    const MAX_TRIES: usize = 8;
    let rules = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0;
    loop {
        tries += 1;
        // The kernel returns this if a concurrent rename made the result uncertain.
        match rustix::fs::openat2(&start, path, flags, mode, rules) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if tries < MAX_TRIES => {}
            opened => return opened,
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn beneath(_start: impl AsFd, _path: &str, _flags: OFlags, _mode: Mode) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

/// A path-only handle cannot be changed itself; its entry in `/proc/self/fd` can, and denotes the
/// same directory.
#[cfg(target_os = "linux")]
fn change_mode(directory: &OwnedFd, mode: Mode) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;
    rustix::fs::chmod(format!("/proc/self/fd/{}", directory.as_raw_fd()), mode)
}

#[cfg(not(target_os = "linux"))]
fn change_mode(directory: &OwnedFd, mode: Mode) -> Result<(), Errno> {
    rustix::fs::fchmod(directory, mode)
}

fn walk(
    start: &OwnedFd,
    path: &RelativePath,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, FileFailure> {
    let Some((parent, name)) = path.split_last() else {
        return Ok(retry_on_intr(|| {
            rustix::fs::openat(start, ".", flags, mode)
        })?);
    };
    let mut reached: Option<OwnedFd> = None;
    for name in parent.components() {
        reached = Some(step_into(reached.as_ref().unwrap_or(start), name)?);
    }
    let parent = reached.as_ref().unwrap_or(start);
    if flags.contains(OFlags::DIRECTORY) {
        return step_into(parent, name);
    }
    Ok(retry_on_intr(|| {
        rustix::fs::openat(parent, name, flags, mode)
    })?)
}

fn step_into(
    parent: &OwnedFd,
    name: impl rustix::path::Arg + Copy,
) -> Result<OwnedFd, FileFailure> {
    match retry_on_intr(|| rustix::fs::openat(parent, name, REACH | ALWAYS, Mode::empty())) {
        // Only selects the error text: the open has failed in either case.
        Err(Errno::NOTDIR) => match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
                Err(FileFailure::Symlink)
            }
            _ => Err(FileFailure::NotDirectory),
        },
        opened => Ok(opened?),
    }
}

fn only_regular(fd: OwnedFd) -> Result<(File, Metadata), FileFailure> {
    let file = File::from(fd);
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        Err(FileFailure::IsDirectory)
    } else if metadata.is_file() {
        Ok((file, metadata))
    } else {
        Err(FileFailure::NotRegular)
    }
}

#[cfg(test)]
#[path = "safe_fs_tests.rs"]
mod tests;
