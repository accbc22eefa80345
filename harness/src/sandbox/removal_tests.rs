//! What is removed, what is spared, and what is found of removals that broke off.

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

fn swept(home: &Path) -> Vec<LeftThread> {
    sweep(&home.into(), Resolver::detect()).expect("sweep")
}

#[test]
fn removing_a_thread_spares_its_neighbours_and_what_it_points_at() {
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
fn what_a_removal_left_keeps_no_later_one_from_its_work() {
    let base = tempfile::tempdir().expect("temporary directory");
    let dirs = dirs_of(base.path(), "alice", "t-1");
    dirs.create(Root::Workspace).expect("create");
    let threads = threads_of(base.path(), "alice");
    for number in 0..2 {
        std::fs::create_dir_all(threads.join(format!(".removing-t-1.{number}/rest")))
            .expect("rest");
    }
    // No directory, so no removal makes it go.
    std::fs::write(threads.join(".removing-t-1.2"), "").expect("odd");
    assert!(dirs.remove().is_err(), "it says so");
    assert_eq!(
        names_in(&threads),
        [".removing-t-1.2"],
        "and the thread's own files are gone"
    );
}

#[test]
fn a_sweep_removes_what_lies_aside_and_tells_who_was_noted() {
    let base = tempfile::tempdir().expect("temporary directory");
    assert!(swept(base.path()).is_empty(), "an empty home");
    let (noted, other) = (
        dirs_of(base.path(), "alice", "t-1"),
        dirs_of(base.path(), "bob@x", "t-2"),
    );
    for dirs in [&noted, &other] {
        dirs.create(Root::Workspace).expect("create");
        dirs.note_removal().expect("noted");
    }
    other.forget_removal().expect("taken back");
    dirs_of(base.path(), "alice", "never-there")
        .note_removal()
        .expect("nothing to note");
    let alice = threads_of(base.path(), "alice");
    std::fs::create_dir_all(alice.join(".removing-t-9.0/a/b")).expect("rest");
    std::fs::create_dir_all(alice.join(".removing-t-9")).expect("rest of an older release");
    let left = swept(base.path());
    assert_eq!(
        left.iter()
            .map(|left| left.thread.as_str())
            .collect::<Vec<_>>(),
        ["t-1"]
    );
    assert_eq!(names_in(&alice), [".removed-t-1", "t-1"]);
    assert!(left[0].remove().expect("removed"));
    assert_eq!(names_in(&alice), [""; 0]);
    assert!(swept(base.path()).is_empty());
    assert!(other.open(Root::Workspace).is_ok());
}
