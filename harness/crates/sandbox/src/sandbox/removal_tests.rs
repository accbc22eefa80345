//! Removal of threads and cleanup of interrupted removals.

use std::os::unix::fs::symlink;

use super::super::test_support::{names_in, thread_id};
use super::super::virtual_paths::Root;
use super::*;

fn dirs_of(home: &Path, user: &str, thread: &str) -> ThreadDirs {
    ThreadDirs::new(home.into(), Resolver::detect(), user, &thread_id(thread))
}

fn threads_of(home: &Path, user: &str) -> std::path::PathBuf {
    home.join("users").join(user).join("threads")
}

fn swept(home: &Path) -> Vec<OrphanedThread> {
    sweep(&home.into(), Resolver::detect()).expect("sweep")
}

#[test]
fn remove_keeps_neighbours_and_link_targets() {
    let base = tempfile::tempdir().expect("temporary directory");
    let dirs = dirs_of(base.path(), "alice", "t-1");
    let neighbour = dirs_of(base.path(), "alice", "t-2");
    dirs.create(Root::Workspace).expect("create");
    neighbour.create(Root::Workspace).expect("create");
    std::fs::write(neighbour.host_path(Root::Workspace).join("kept"), "x").expect("write");
    symlink(
        neighbour.host_path(Root::Workspace),
        dirs.host_path(Root::Workspace).join("link"),
    )
    .expect("link");
    assert!(dirs.remove().expect("remove"));
    assert!(!dirs.remove().expect("nothing left"));
    assert!(neighbour.host_path(Root::Workspace).join("kept").is_file());
    assert_eq!(names_in(&threads_of(base.path(), "alice")), ["t-2"]);
}

#[test]
fn remove_succeeds_after_interrupted_removal() {
    let base = tempfile::tempdir().expect("temporary directory");
    let dirs = dirs_of(base.path(), "alice", "t-1");
    dirs.create(Root::Workspace).expect("create");
    let threads = threads_of(base.path(), "alice");
    for number in 0..2 {
        std::fs::create_dir_all(threads.join(format!(".removing-t-1.{number}/rest")))
            .expect("rest");
    }
    // Not a directory, so a removal does not delete it.
    std::fs::write(threads.join(".removing-t-1.2"), "").expect("odd");
    assert!(dirs.remove().is_err(), "the result reports it");
    assert_eq!(
        names_in(&threads),
        [".removing-t-1.2"],
        "the thread's own files are removed"
    );
}

#[test]
fn sweep_removes_trash_and_returns_marked_threads() {
    let base = tempfile::tempdir().expect("temporary directory");
    assert!(swept(base.path()).is_empty(), "an empty home");
    let (marked, other) = (
        dirs_of(base.path(), "alice", "t-1"),
        dirs_of(base.path(), "bob@x", "t-2"),
    );
    for dirs in [&marked, &other] {
        dirs.create(Root::Workspace).expect("create");
        dirs.note_removal().expect("noted");
    }
    other.forget_removal().expect("marker removed");
    dirs_of(base.path(), "alice", "never-there")
        .note_removal()
        .expect("no folder, no marker");
    let alice = threads_of(base.path(), "alice");
    std::fs::create_dir_all(alice.join(".removing-t-9.0/a/b")).expect("rest");
    std::fs::create_dir_all(alice.join(".removing-t-9")).expect("leftover of an older release");
    let orphans = swept(base.path());
    assert_eq!(
        orphans
            .iter()
            .map(|orphans| orphans.thread.as_str())
            .collect::<Vec<_>>(),
        ["t-1"]
    );
    assert_eq!(names_in(&alice), [".removed-t-1", "t-1"]);
    assert!(orphans[0].remove().expect("removed"));
    assert_eq!(names_in(&alice), [""; 0]);
    assert!(swept(base.path()).is_empty());
    assert!(other.open(Root::Workspace).is_ok());
}
