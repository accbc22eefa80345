//! Location of a user's thread files under the runtime home.
//!
//! ```text
//! {home}/users/{user}/threads/{thread}/user-data/{workspace,uploads,outputs}
//! {home}/users/{user}/threads/{thread}/acp-workspace
//! ```
//!
//! Directories are created by the first write. Those above the roots have mode 0700, so that no
//! other account of the host has access; the roots have 0755. They are not world-writable: every
//! writer runs under the server's account. A container sandbox whose processes have another user id
//! must grant itself access, during its setup and only for the threads that use it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::file_error::FileFailure;
use super::safe_fs::{PRIVATE_DIR, Resolver, SHARED_DIR, SafeDir};
use super::virtual_paths::{PathError, RelativePath, Root, VirtualPath};
use deerflow_core::ids::ThreadId;

/// Name of a user's directory: the user id if it is safe, a readable and unique derived name
/// otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UserDirName(String);

impl UserDirName {
    /// Number of characters of a long id that stay readable.
    const READABLE_CHARS: usize = 128;

    /// Returns the directory name of a user id.
    ///
    /// An id of ASCII letters, digits, `_` and `-` is the name itself. Otherwise every other
    /// character becomes `-`, and `-` plus the first 16 hexadecimal digits of the id's SHA-256 are
    /// appended, so two ids never share a directory. For the same reason the digits are also
    /// appended to an id that ends like a derived name and to one that is too long.
    pub fn from_user_id(raw: &str) -> Self {
        let harmless =
            !raw.is_empty() && raw.len() <= Self::READABLE_CHARS && raw.chars().all(is_plain_char);
        if harmless && !ends_like_derived_name(raw) {
            return Self(raw.to_owned());
        }
        let readable: String = raw
            .chars()
            .take(Self::READABLE_CHARS)
            .map(|c| if is_plain_char(c) { c } else { '-' })
            .collect();
        let digest = hex::encode(&Sha256::digest(raw.as_bytes())[..8]);
        Self(format!("{readable}-{digest}"))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Directories of one thread. Cheap to clone; creating a value does not touch the disk.
#[derive(Clone)]
pub struct ThreadDirs {
    pub(super) home: Arc<Path>,
    pub(super) thread: RelativePath,
    user_data: RelativePath,
    pub(super) resolver: Resolver,
}

impl ThreadDirs {
    /// Returns the directories of `thread` of `user_id` under the runtime home.
    pub fn new(home: Arc<Path>, resolver: Resolver, user_id: &str, thread: &ThreadId) -> Self {
        Self::of_user_dir(
            home,
            resolver,
            UserDirName::from_user_id(user_id).as_str(),
            thread,
        )
    }

    /// As [`new`](Self::new), with a known name of the user's directory.
    pub(super) fn of_user_dir(
        home: Arc<Path>,
        resolver: Resolver,
        user_dir: &str,
        thread: &ThreadId,
    ) -> Self {
        let names = ["users", user_dir, "threads", thread.as_str()];
        let thread = RelativePath::of_plain_names(&names);
        let user_data = RelativePath::of_plain_names(&[thread.as_str(), "user-data"]);
        Self {
            home,
            thread,
            user_data,
            resolver,
        }
    }

    /// Path of a root on the host: for the working directory of a process or the mounts of a
    /// container. Never open files in this process by it, and never show it.
    pub fn host_path(&self, root: Root) -> PathBuf {
        self.home
            .join(self.above(root).as_str())
            .join(root.dir_name())
    }

    /// Parent directory of a root.
    fn above(&self, root: Root) -> &RelativePath {
        if root == Root::AcpWorkspace {
            &self.thread
        } else {
            &self.user_data
        }
    }

    /// Opens a directory whose location was chosen by the operator or by this program.
    ///
    /// # Errors
    /// System errors.
    pub(super) fn open_host_dir(&self, host: &Path) -> Result<SafeDir, FileFailure> {
        SafeDir::open_trusted(host, self.resolver)
    }

    /// Opens a root. Creates nothing.
    ///
    /// # Errors
    /// [`FileFailure::NotFound`] if nothing was written there yet; see [`SafeDir::open_dir`].
    pub fn open(&self, root: Root) -> Result<SafeDir, FileFailure> {
        SafeDir::open_trusted(&self.home, self.resolver)?
            .open_dir(self.above(root))?
            .open_dir(&name_of(root))
    }

    /// Opens a root. Creates it if it is missing, and restores the owner's permissions if a command
    /// removed them.
    ///
    /// # Errors
    /// See [`SafeDir::create_dirs`].
    pub fn create(&self, root: Root) -> Result<SafeDir, FileFailure> {
        match self.open(root) {
            Err(FileFailure::NotFound) => {}
            Ok(opened) => return opened.restore_owner_access().map(|()| opened),
            refused => return refused,
        }
        std::fs::create_dir_all(&self.home).inspect_err(|error| {
            tracing::error!(%error, home = %self.home.display(), "cannot create the runtime home");
        })?;
        SafeDir::open_trusted(&self.home, self.resolver)?
            .create_dirs(self.above(root), PRIVATE_DIR)?
            .create_dirs(&name_of(root), SHARED_DIR)
    }

    /// Names of the user's folder and of the thread's folder.
    #[cfg(feature = "containers")]
    pub(super) fn names(&self) -> (&str, &str) {
        let mut names = self.thread.components().skip(1).step_by(2);
        (
            names.next().unwrap_or_default(),
            names.next().unwrap_or_default(),
        )
    }

    /// Creates a root that every account can write to. Other accounts reach it through a mount
    /// only: its parents stay private.
    #[cfg(feature = "containers")]
    pub(super) fn create_world_writable(&self, root: Root) -> Result<PathBuf, FileFailure> {
        let everyone = rustix::fs::Mode::from_raw_mode(0o777);
        rustix::fs::chmodat(
            self.create(root)?,
            ".",
            everyone,
            rustix::fs::AtFlags::empty(),
        )?;
        Ok(self.host_path(root))
    }

    /// Creates a private folder of the thread that no agent can access, and returns its path. It is
    /// deleted with the thread. The names must be plain.
    #[cfg(feature = "child-process")]
    pub fn create_private_dir(&self, names: &[&str]) -> Result<PathBuf, FileFailure> {
        std::fs::create_dir_all(&self.home)?;
        let private_dir =
            RelativePath::of_plain_names(&[[self.thread.as_str()].as_slice(), names].concat());
        SafeDir::open_trusted(&self.home, self.resolver)?.create_dirs(&private_dir, PRIVATE_DIR)?;
        Ok(self.private_dir(names))
    }

    /// Path of such a folder on the host.
    #[cfg(feature = "child-process")]
    pub fn private_dir(&self, names: &[&str]) -> PathBuf {
        names
            .iter()
            .fold(self.home.join(self.thread.as_str()), |path, name| {
                path.join(name)
            })
    }

    /// Resolves a text to a virtual path: the text is a virtual path, or a host path inside one of
    /// the roots, which a model may have seen in the output of a program. Pure; the file need not
    /// exist.
    ///
    /// # Errors
    /// The [`PathError`] of parsing the text as a virtual path.
    pub fn resolve_for_display(&self, raw: &str) -> Result<VirtualPath, PathError> {
        let refusal = match VirtualPath::parse(raw) {
            Ok(path) => return Ok(path),
            Err(refusal) => refusal,
        };
        for root in Root::ALL {
            let host = self.host_path(root);
            let beneath = Path::new(raw)
                .strip_prefix(&host)
                .ok()
                .and_then(Path::to_str);
            if let Some(beneath) = beneath {
                return Ok(VirtualPath::new(root, RelativePath::parse(beneath)?));
            }
        }
        Err(refusal)
    }

    /// Key that distinguishes this thread's files from those of other threads.
    pub(super) fn key(&self) -> (&Path, &RelativePath) {
        (&self.home, &self.thread)
    }
}

impl fmt::Debug for ThreadDirs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ThreadDirs")
            .field(&self.thread.as_str())
            .finish()
    }
}

fn name_of(root: Root) -> RelativePath {
    RelativePath::of_plain_names(&[root.dir_name()])
}

fn is_plain_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

fn ends_like_derived_name(raw: &str) -> bool {
    raw.rsplit_once('-').is_some_and(|(_, digits)| {
        digits.len() == 16
            && digits
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
#[path = "thread_dirs_tests.rs"]
mod tests;
