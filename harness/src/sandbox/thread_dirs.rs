//! Where the files of one user's thread lie under the runtime home.
//!
//! ```text
//! {home}/users/{user}/threads/{thread}/user-data/{workspace,uploads,outputs}
//! {home}/users/{user}/threads/{thread}/acp-workspace
//! ```
//!
//! Directories are made when something is first written. Those above the roots have mode 0700, so
//! that no other account of the host can look in; the roots have 0755. They are not world-writable:
//! everything that writes to them today runs under the server's own account. A container sandbox whose
//! processes have another user id must grant itself access when it is set up, to the threads that use it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::fault::Fault;
use super::safe_fs::{PRIVATE_DIR, Resolver, SHARED_DIR, SafeDir};
use super::virtual_paths::{PathError, RelativePath, Root, VirtualPath};
use crate::ids::ThreadId;

/// The name of a user's directory: the user's id if it is harmless, a recognizable unique stand-in if not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UserDirName(String);

impl UserDirName {
    /// How much of an over-long id stays readable.
    const READABLE_CHARS: usize = 128;

    /// The directory name of a user id.
    ///
    /// An id of ASCII letters, digits, `_` and `-` is the name itself. Otherwise every other character
    /// becomes `-`, and `-` with the first 16 hexadecimal digits of the id's SHA-256 is added, so two ids
    /// never share a directory. For the same reason an id that already ends like such a stand-in, and one
    /// that is too long for a name, get the digits too.
    pub fn from_user_id(raw: &str) -> Self {
        let harmless =
            !raw.is_empty() && raw.len() <= Self::READABLE_CHARS && raw.chars().all(is_harmless);
        if harmless && !ends_like_a_stand_in(raw) {
            return Self(raw.to_owned());
        }
        let readable: String = raw
            .chars()
            .take(Self::READABLE_CHARS)
            .map(|c| if is_harmless(c) { c } else { '-' })
            .collect();
        let digest = hex::encode(&Sha256::digest(raw.as_bytes())[..8]);
        Self(format!("{readable}-{digest}"))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The directories of one thread. Cheap to clone; making one touches no disk.
#[derive(Clone)]
pub struct ThreadDirs {
    pub(super) home: Arc<Path>,
    pub(super) thread: RelativePath,
    user_data: RelativePath,
    pub(super) resolver: Resolver,
}

impl ThreadDirs {
    /// The directories of `thread` of `user_id` under the runtime home.
    pub fn new(home: Arc<Path>, resolver: Resolver, user_id: &str, thread: &ThreadId) -> Self {
        Self::of_user_dir(
            home,
            resolver,
            UserDirName::from_user_id(user_id).as_str(),
            thread,
        )
    }

    /// The same where the name of the user's directory is known.
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

    /// Where a root lies on the host: for the working directory of a process or a container's mounts,
    /// never for opening files in this process and never to be shown.
    pub fn host_path(&self, root: Root) -> PathBuf {
        self.home
            .join(self.above(root).as_str())
            .join(root.dir_name())
    }

    /// What a root lies in.
    fn above(&self, root: Root) -> &RelativePath {
        if root == Root::AcpWorkspace {
            &self.thread
        } else {
            &self.user_data
        }
    }

    /// A directory that the operator, or this program, put where it is.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub(super) fn open_other(&self, host: &Path) -> Result<SafeDir, Fault> {
        SafeDir::open_trusted(host, self.resolver)
    }

    /// Opens a root. Nothing is made.
    ///
    /// # Errors
    /// [`Fault::NotFound`] when nothing was written there yet; see [`SafeDir::open_dir`].
    pub fn open(&self, root: Root) -> Result<SafeDir, Fault> {
        SafeDir::open_trusted(&self.home, self.resolver)?
            .open_dir(self.above(root))?
            .open_dir(&name_of(root))
    }

    /// Opens a root, making it when it is missing, and opening it to its owner when a command has closed it.
    ///
    /// # Errors
    /// See [`SafeDir::create_dirs`].
    pub fn create(&self, root: Root) -> Result<SafeDir, Fault> {
        match self.open(root) {
            Err(Fault::NotFound) => {}
            Ok(opened) => return opened.regain().map(|()| opened),
            refused => return refused,
        }
        std::fs::create_dir_all(&self.home).inspect_err(|error| {
            tracing::error!(%error, home = %self.home.display(), "the runtime home cannot be made");
        })?;
        SafeDir::open_trusted(&self.home, self.resolver)?
            .create_dirs(self.above(root), PRIVATE_DIR)?
            .create_dirs(&name_of(root), SHARED_DIR)
    }

    /// The names of the user's folder and of the thread's.
    #[cfg(feature = "containers")]
    pub(super) fn names(&self) -> (&str, &str) {
        let mut names = self.thread.components().skip(1).step_by(2);
        (
            names.next().unwrap_or_default(),
            names.next().unwrap_or_default(),
        )
    }

    /// Lets every account write into a root, which it reaches by a mount alone: the folders above stay this account's own.
    #[cfg(feature = "containers")]
    pub(super) fn create_open(&self, root: Root) -> Result<PathBuf, Fault> {
        let everyone = rustix::fs::Mode::from_raw_mode(0o777);
        rustix::fs::chmodat(
            self.create(root)?,
            ".",
            everyone,
            rustix::fs::AtFlags::empty(),
        )?;
        Ok(self.host_path(root))
    }

    /// Makes a folder of the thread that no agent reaches, for this account alone, and says where it lies. It goes with the thread.
    /// The names are plain.
    #[cfg(feature = "mcp")]
    pub(crate) fn create_apart(&self, names: &[&str]) -> Result<PathBuf, Fault> {
        std::fs::create_dir_all(&self.home)?;
        let apart =
            RelativePath::of_plain_names(&[[self.thread.as_str()].as_slice(), names].concat());
        SafeDir::open_trusted(&self.home, self.resolver)?.create_dirs(&apart, PRIVATE_DIR)?;
        Ok(self.apart(names))
    }

    /// Where such a folder lies on the host.
    #[cfg(feature = "mcp")]
    pub(crate) fn apart(&self, names: &[&str]) -> PathBuf {
        names
            .iter()
            .fold(self.home.join(self.thread.as_str()), |path, name| {
                path.join(name)
            })
    }

    /// The virtual path that a text means: a virtual path itself, or a host path inside one of the roots,
    /// which a model may have seen in the output of a program. Pure; the file need not exist.
    ///
    /// # Errors
    /// The [`PathError`] of reading the text as a virtual path.
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

    /// What tells this thread's files from those of every other thread.
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

fn is_harmless(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

fn ends_like_a_stand_in(raw: &str) -> bool {
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
