//! Copies of a thread's files: content, links, limits and the cleanup of abandoned copies.

use std::fs::{self, FileTimes};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::super::files::FileHome;
use super::super::test_support::{names_in, thread_id};
use super::*;
use crate::sandbox::blocking_files::FileLimits;

fn home(base: &Path) -> FileHome {
    FileHome::new(base, FileLimits::default())
}

fn root(base: &Path, thread: &str, root: &str) -> std::path::PathBuf {
    base.join("users/ann/threads")
        .join(thread)
        .join("user-data")
        .join(root)
}

#[tokio::test]
async fn copy_has_files_and_modes_and_links_unfollowed() {
    let base = tempfile::tempdir().expect("temporary directory");
    let secret = base.path().join("secret");
    fs::create_dir(&secret).expect("folder");
    fs::write(secret.join("key"), "s3cret").expect("write");
    let source = root(base.path(), "t-1", "workspace");
    fs::create_dir_all(source.join("a/b")).expect("folders");
    fs::write(source.join("a/b/run.sh"), "echo").expect("write");
    fs::set_permissions(source.join("a/b/run.sh"), fs::Permissions::from_mode(0o755))
        .expect("mode");
    symlink(&secret, source.join("folder")).expect("link");
    symlink(secret.join("key"), source.join("file")).expect("link");
    fs::create_dir_all(root(base.path(), "t-1", "outputs")).expect("folders");
    fs::write(root(base.path(), "t-1", "outputs").join("o.md"), "o").expect("write");

    let home = home(base.path());
    let (from, to) = (
        home.thread("ann", &thread_id("t-1")),
        home.thread("ann", &thread_id("t-2")),
    );
    assert!(
        from.copy_to(&to, CopyLimits::default())
            .await
            .expect("copied")
    );
    to.forget_removal().await.expect("marker removed");

    let copy = root(base.path(), "t-2", "workspace");
    assert_eq!(
        fs::read_to_string(copy.join("a/b/run.sh")).expect("read"),
        "echo"
    );
    let mode = fs::metadata(copy.join("a/b/run.sh"))
        .expect("stat")
        .permissions()
        .mode();
    assert_eq!(mode & 0o100, 0o100, "executable");
    assert_eq!(fs::read_link(copy.join("folder")).expect("a link"), secret);
    assert_eq!(
        fs::read_link(copy.join("file")).expect("a link"),
        secret.join("key")
    );
    assert_eq!(
        fs::read_to_string(root(base.path(), "t-2", "outputs").join("o.md")).expect("read"),
        "o"
    );
    assert_eq!(
        names_in(&base.path().join("users/ann/threads")),
        ["t-1", "t-2"]
    );
    fs::write(source.join("a/b/run.sh"), "changed").expect("write");
    assert_eq!(
        fs::read_to_string(copy.join("a/b/run.sh")).expect("read"),
        "echo",
        "a copy of its own"
    );
}

#[tokio::test]
async fn thread_without_files_copies_nothing() {
    let base = tempfile::tempdir().expect("temporary directory");
    let home = home(base.path());
    let (from, to) = (
        home.thread("ann", &thread_id("t-1")),
        home.thread("ann", &thread_id("t-2")),
    );
    assert!(
        !from
            .copy_to(&to, CopyLimits::default())
            .await
            .expect("nothing")
    );
    assert!(!base.path().join("users").exists());
}

#[tokio::test]
async fn copy_beyond_a_limit_is_refused() {
    let base = tempfile::tempdir().expect("temporary directory");
    let source = root(base.path(), "t-1", "workspace");
    fs::create_dir_all(&source).expect("folders");
    for name in ["a", "b"] {
        fs::write(source.join(name), "12345").expect("write");
    }
    let home = home(base.path());
    let from = home.thread("ann", &thread_id("t-1"));
    for (n, (limits, fits)) in [
        (
            CopyLimits {
                bytes: 10,
                entries: 2,
            },
            true,
        ),
        (
            CopyLimits {
                bytes: 9,
                entries: 2,
            },
            false,
        ),
        (
            CopyLimits {
                bytes: 10,
                entries: 1,
            },
            false,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let to = home.thread("ann", &thread_id(&format!("to-{n}")));
        let copied = from.copy_to(&to, limits).await;
        assert_eq!(copied.is_ok(), fits, "{limits:?}");
        to.remove_all().await.expect("removed");
    }
    assert_eq!(names_in(&base.path().join("users/ann/threads")), ["t-1"]);
}

#[tokio::test]
async fn sweep_returns_abandoned_copies_only() {
    let base = tempfile::tempdir().expect("temporary directory");
    fs::create_dir_all(root(base.path(), "t-1", "workspace")).expect("folders");
    let home = home(base.path());
    let from = home.thread("ann", &thread_id("t-1"));
    for thread in ["young", "old"] {
        let to = home.thread("ann", &thread_id(thread));
        from.copy_to(&to, CopyLimits::default())
            .await
            .expect("copied");
    }
    let marker = base.path().join("users/ann/threads/.copying-old");
    let file = fs::File::options()
        .write(true)
        .open(marker)
        .expect("the marker");
    let created = file
        .metadata()
        .and_then(|of| of.modified())
        .expect("a time");
    let past = created - ABANDONED - Duration::from_secs(1);
    file.set_times(FileTimes::new().set_modified(past))
        .expect("times");

    let orphans = home.sweep().await.expect("swept");
    assert_eq!(
        orphans
            .iter()
            .map(|orphan| orphan.thread.as_str())
            .collect::<Vec<_>>(),
        ["old"]
    );
    for orphan in orphans {
        home.remove_left(orphan).await.expect("removed");
    }
    let threads = base.path().join("users/ann/threads");
    assert_eq!(names_in(&threads), [".copying-young", "t-1", "young"]);
}
