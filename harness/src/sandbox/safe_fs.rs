//! Opening files beneath a directory handle, so that nothing on the disk can lead elsewhere.
//!
//! An agent owns the directories that these functions walk and may swap a directory for a link at any
//! moment. So nothing here looks first and opens later: the kernel is asked once, with the rule that no
//! link is followed and the start is not left, and what was opened is then examined through its handle.

use std::ffi::CString;
use std::fs::{File, Metadata};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};

use super::fault::Fault;
use super::pending_file::PendingFile;
use super::virtual_paths::RelativePath;

/// Mode of the directories that hold one user's data: nobody else on the host looks inside.
pub const PRIVATE_DIR: Mode = Mode::RWXU;

/// Mode of the directories that an agent works in.
pub const SHARED_DIR: Mode = Mode::from_raw_mode(0o755);

/// Mode of a new file.
pub(super) const NEW_FILE: Mode = Mode::from_raw_mode(0o644);

/// How a directory is opened that only serves to reach what is in it.
#[cfg(target_os = "linux")]
const REACH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
#[cfg(not(target_os = "linux"))]
const REACH: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Opening never follows a last link, never blocks on a FIFO, never gains a terminal, never leaks to a child.
const ALWAYS: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);
const NEVER_BLOCK: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

/// Who makes sure that a path stays beneath its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolver {
    /// The kernel, in one `openat2` call.
    Kernel,
    /// This program, opening one name after the other without following links: for kernels before 5.6,
    /// other systems, and containers whose seccomp filter denies `openat2`.
    Walk,
}

impl Resolver {
    /// The best resolver that works here.
    pub fn detect() -> Self {
        let probe = beneath(rustix::fs::CWD, ".", REACH | ALWAYS, Mode::empty());
        if probe.is_ok() {
            Self::Kernel
        } else {
            Self::Walk
        }
    }
}

/// An open directory, and the promise that everything reached through it lies beneath it.
#[derive(Debug)]
pub struct SafeDir {
    fd: OwnedFd,
    resolver: Resolver,
}

/// What a directory entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, FIFO, socket or device: listed, never opened.
    Other,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name as the system has it, which need not be UTF-8.
    pub name: CString,
    /// What it is.
    pub kind: NodeKind,
}

impl SafeDir {
    /// Opens a directory that the operator names, which may well be behind links.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub fn open_trusted(path: &Path, resolver: Resolver) -> Result<Self, Fault> {
        let flags = REACH | OFlags::CLOEXEC;
        let fd = retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))?;
        Ok(Self { fd, resolver })
    }

    /// Opens a directory beneath this one.
    ///
    /// # Errors
    /// [`Fault::NotFound`], [`Fault::Symlink`], [`Fault::NotDirectory`] and what the system reports.
    pub fn open_dir(&self, path: &RelativePath) -> Result<Self, Fault> {
        let fd = self.open(path, REACH, Mode::empty())?;
        Ok(Self {
            fd,
            resolver: self.resolver,
        })
    }

    /// Opens a directory beneath this one, making it and its parents when they are missing.
    ///
    /// # Errors
    /// As [`open_dir`](Self::open_dir), and whatever keeps a directory from being made.
    pub fn create_dirs(&self, path: &RelativePath, mode: Mode) -> Result<Self, Fault> {
        match self.open_dir(path) {
            Err(Fault::NotFound) => {}
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
    /// As [`open_dir`](Self::open_dir), [`Fault::IsDirectory`], [`Fault::NotRegular`].
    pub fn open_read(&self, path: &RelativePath) -> Result<(File, Metadata), Fault> {
        let fd = self.open(path, OFlags::RDONLY | NEVER_BLOCK, Mode::empty())?;
        only_regular(fd)
    }

    /// Opens a regular file for adding to its end, making it when it is missing.
    ///
    /// # Errors
    /// As [`open_read`](Self::open_read), and [`Fault::HardLinked`].
    pub fn open_append(&self, path: &RelativePath) -> Result<(File, Metadata), Fault> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | NEVER_BLOCK;
        let fd = self.open(path, flags, NEW_FILE)?;
        check_replaceable(&rustix::fs::fstat(&fd)?)?;
        only_regular(fd)
    }

    /// Starts a file that takes the place of `path` in one step when it is complete.
    /// The directory must exist.
    ///
    /// # Errors
    /// [`Fault::IsDirectory`], [`Fault::Symlink`], [`Fault::NotRegular`], [`Fault::HardLinked`] or
    /// [`Fault::Permission`] when something that must not be replaced has that name, and what the system reports.
    pub fn begin_replace(&self, path: &RelativePath) -> Result<PendingFile, Fault> {
        let (parent, name) = path.split_last().ok_or(Fault::IsDirectory)?;
        PendingFile::create(self.open_dir(&parent)?, name)
    }

    /// What `path` is, without opening or following it.
    ///
    /// # Errors
    /// As [`open_dir`](Self::open_dir); a link at the end of the path is [`Fault::Symlink`].
    pub fn stat(&self, path: &RelativePath) -> Result<Stat, Fault> {
        let stat = match path.split_last() {
            None => rustix::fs::fstat(&self.fd)?,
            Some((parent, name)) => self.open_dir(&parent)?.stat_name(name)?,
        };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            return Err(Fault::Symlink);
        }
        Ok(stat)
    }

    /// Removes a file; a link is removed itself, never what it names.
    ///
    /// # Errors
    /// As [`open_dir`](Self::open_dir), [`Fault::IsDirectory`].
    pub fn remove_file(&self, path: &RelativePath) -> Result<(), Fault> {
        let (parent, name) = path.split_last().ok_or(Fault::IsDirectory)?;
        let parent = self.open_dir(&parent)?;
        Ok(rustix::fs::unlinkat(&parent.fd, name, AtFlags::empty())?)
    }

    /// The entries of this directory in no order, at most `limit`, and whether there were more.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub fn entries(&self, limit: usize) -> Result<(Vec<Entry>, bool), Fault> {
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

    /// The same directory through another handle, or the one that an entry's raw name means.
    pub(super) fn enter(&self, name: &CString) -> Result<Self, Fault> {
        let fd = step_into(&self.fd, name.as_c_str())?;
        Ok(Self {
            fd,
            resolver: self.resolver,
        })
    }

    /// Gives the owner of this directory the rights to it back that a command may have taken away.
    pub(super) fn regain(&self) -> Result<(), Fault> {
        let mode = Mode::from_raw_mode(rustix::fs::fstat(&self.fd)?.st_mode);
        if mode.contains(Mode::RWXU) {
            return Ok(());
        }
        Ok(change_mode(&self.fd, mode | Mode::RWXU)?)
    }

    /// Facts about an entry of this directory; a link is described, not followed.
    pub(super) fn stat_name(&self, name: impl rustix::path::Arg) -> Result<Stat, Errno> {
        rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    fn open(&self, path: &RelativePath, flags: OFlags, mode: Mode) -> Result<OwnedFd, Fault> {
        let flags = flags | ALWAYS;
        if self.resolver == Resolver::Walk {
            return walk(&self.fd, path, flags, mode);
        }
        let target = if path.is_empty() { "." } else { path.as_str() };
        match beneath(&self.fd, target, flags, mode) {
            // A link where a directory was asked for is reported like a file: the walk tells them apart.
            Err(Errno::NOTDIR) => walk(&self.fd, path, flags, mode),
            Err(Errno::XDEV) => Err(Fault::Symlink),
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

/// Refuses to write to anything but a plain, writable file that has no second name.
pub(super) fn check_replaceable(stat: &Stat) -> Result<(), Fault> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_nlink > 1 => Err(Fault::HardLinked),
        FileType::RegularFile if stat.st_mode & 0o222 == 0 => Err(Fault::Permission),
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Fault::IsDirectory),
        FileType::Symlink => Err(Fault::Symlink),
        _ => Err(Fault::NotRegular),
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
        // The kernel asks to try again when a rename elsewhere kept it from being sure.
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

/// A handle that only reaches takes no change itself; its name among this process' handles does, and leads nowhere else.
#[cfg(target_os = "linux")]
fn change_mode(directory: &OwnedFd, mode: Mode) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;
    rustix::fs::chmod(format!("/proc/self/fd/{}", directory.as_raw_fd()), mode)
}

#[cfg(not(target_os = "linux"))]
fn change_mode(directory: &OwnedFd, mode: Mode) -> Result<(), Errno> {
    rustix::fs::fchmod(directory, mode)
}

fn walk(start: &OwnedFd, path: &RelativePath, flags: OFlags, mode: Mode) -> Result<OwnedFd, Fault> {
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

fn step_into(parent: &OwnedFd, name: impl rustix::path::Arg + Copy) -> Result<OwnedFd, Fault> {
    match retry_on_intr(|| rustix::fs::openat(parent, name, REACH | ALWAYS, Mode::empty())) {
        // Only for the words of the refusal: the open has failed either way.
        Err(Errno::NOTDIR) => match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
                Err(Fault::Symlink)
            }
            _ => Err(Fault::NotDirectory),
        },
        opened => Ok(opened?),
    }
}

fn only_regular(fd: OwnedFd) -> Result<(File, Metadata), Fault> {
    let file = File::from(fd);
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        Err(Fault::IsDirectory)
    } else if metadata.is_file() {
        Ok((file, metadata))
    } else {
        Err(Fault::NotRegular)
    }
}

#[cfg(test)]
#[path = "safe_fs_tests.rs"]
mod tests;
