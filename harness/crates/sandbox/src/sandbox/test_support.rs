//! A runtime home on the disk with one thread, and a canary outside that no operation may touch or
//! reveal.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::blocking_files::FileLimits;
use super::files::{FileHome, ThreadFiles};
use super::safe_fs::Resolver;
use super::virtual_paths::{Root, VirtualPath};
use deerflow_core::ids::ThreadId;

/// Content of the file outside.
pub(super) const CANARY: &str = "canary: nobody may read this";

pub(super) const RESOLVERS: [Resolver; 2] = [Resolver::Kernel, Resolver::Walk];

pub(super) struct TestHome {
    base: tempfile::TempDir,
    pub(super) home: FileHome,
    pub(super) files: ThreadFiles,
}

impl TestHome {
    pub(super) fn new(resolver: Resolver) -> Self {
        Self::with_limits(resolver, FileLimits::default())
    }

    pub(super) fn with_limits(resolver: Resolver, limits: FileLimits) -> Self {
        let base = tempfile::tempdir().expect("temporary directory");
        std::fs::create_dir(base.path().join("outside")).expect("outside");
        std::fs::write(base.path().join("outside/secret.txt"), CANARY).expect("canary");
        let home: Arc<Path> = base.path().join("home").into();
        let home = FileHome::with_resolver(home, limits, resolver);
        let files = home.thread("default", &thread_id("t1"));
        Self { base, home, files }
    }

    /// Creates a home whose three roots exist.
    pub(super) fn with_roots(resolver: Resolver) -> Self {
        let fixture = Self::new(resolver);
        for root in Root::ALL {
            fixture.files.blocking().dirs().create(root).expect("root");
        }
        fixture
    }

    pub(super) fn base(&self) -> &Path {
        self.base.path()
    }

    pub(super) fn outside(&self) -> PathBuf {
        self.base().join("outside")
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.files.blocking().dirs().host_path(Root::Workspace)
    }

    /// Asserts that nothing outside of the home was changed.
    pub(super) fn assert_outside_is_untouched(&self) {
        assert_eq!(names_in(self.base()), ["home", "outside"]);
        assert_eq!(names_in(&self.outside()), ["secret.txt"]);
        let secret = std::fs::read_to_string(self.outside().join("secret.txt")).expect("canary");
        assert_eq!(secret, CANARY);
    }
}

pub(super) fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .expect("directory")
        .map(|entry| {
            entry
                .expect("entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

pub(super) fn path(raw: &str) -> VirtualPath {
    VirtualPath::parse(raw).expect("valid virtual path")
}

pub(super) fn thread_id(raw: &str) -> ThreadId {
    ThreadId::parse(raw).expect("valid thread id")
}

/// Virtual path in the workspace.
pub(super) fn work(relative: &str) -> VirtualPath {
    path(&format!("/mnt/user-data/workspace/{relative}"))
}
