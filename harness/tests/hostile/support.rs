//! Shared helpers: settings and folders.

use std::path::Path;
use std::sync::Arc;

use deerflow_harness::ids::ThreadId;
use deerflow_harness::sandbox::ThreadDirs;
use deerflow_harness::sandbox::safe_fs::Resolver;

/// Returns a number from the environment, such as `SECONDS=60`.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no configuration object"
    )]
    let value = std::env::var(name);
    value.map_or(default, |value| {
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} must be a number, not {value:?}"))
    })
}

/// Returns the folders of a thread of `ann`.
pub(crate) fn dirs_of(home: &Path, thread: &str) -> ThreadDirs {
    let home: Arc<Path> = home.into();
    ThreadDirs::new(
        home,
        Resolver::detect(),
        "ann",
        &ThreadId::parse(thread).expect("an id"),
    )
}
