//! Removal of whole trees; link targets stay.

use std::os::unix::fs::{PermissionsExt, symlink};

use rustix::fs::Mode;

use super::super::safe_fs::{Resolver, SHARED_DIR};
use super::*;

fn plain(raw: &str) -> RelativePath {
    RelativePath::parse(raw).expect("plain path")
}

fn fixture() -> (tempfile::TempDir, SafeDir) {
    let fixture = tempfile::tempdir().expect("temporary directory");
    let start = SafeDir::open_trusted(fixture.path(), Resolver::detect()).expect("open");
    (fixture, start)
}

#[test]
fn remove_tree_keeps_link_targets() {
    let (fixture, start) = fixture();
    let at = |name: &str| fixture.path().join(name);
    std::fs::create_dir_all(at("outside/dir")).expect("outside");
    std::fs::write(at("outside/dir/kept"), "kept").expect("kept");
    std::fs::create_dir_all(at("tree/a/b/c")).expect("tree");
    std::fs::create_dir_all(at("tree/a/b2/.lifted-1/x")).expect("tree");
    std::fs::create_dir_all(at("tree/.lifted-1/full")).expect("hostile name");
    std::fs::write(at("tree/.lifted-2"), "hostile name").expect("hostile name");
    std::fs::write(at("tree/a/b/c/file"), "x").expect("file");
    for place_of_link in ["tree/to-dir", "tree/a/to-dir", "tree/a/b/to-dir"] {
        symlink(at("outside/dir"), at(place_of_link)).expect("link");
    }
    assert!(remove_tree(&start, &plain("tree")).expect("remove"));
    assert!(!at("tree").exists());
    assert_eq!(
        std::fs::read_to_string(at("outside/dir/kept")).expect("kept"),
        "kept"
    );
    assert!(!remove_tree(&start, &plain("tree")).expect("nothing left"));
}

/// Root ignores permissions, so this test is only effective as another user.
#[test]
fn remove_tree_handles_directories_without_permissions() {
    let (fixture, start) = fixture();
    let at = |name: &str| fixture.path().join(name);
    std::fs::create_dir_all(at("tree/none/inner/deep")).expect("tree");
    std::fs::create_dir_all(at("tree/read/only/deep")).expect("tree");
    std::fs::write(at("tree/none/inner/file"), "x").expect("file");
    std::fs::write(at("tree/read/only/file"), "x").expect("file");
    for (name, mode) in [
        ("tree/none/inner", 0),
        ("tree/none", 0),
        ("tree/read/only", 0o555),
        ("tree/read", 0o555),
        ("tree", 0o055),
    ] {
        std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(mode)).expect("chmod");
    }
    assert!(remove_tree(&start, &plain("tree")).expect("remove"));
    assert!(!at("tree").exists());
}

#[test]
fn remove_tree_rejects_link_as_start() {
    let (fixture, start) = fixture();
    std::fs::create_dir(fixture.path().join("real")).expect("dir");
    symlink("real", fixture.path().join("link")).expect("link");
    assert!(matches!(
        remove_tree(&start, &plain("link")),
        Err(FileFailure::Symlink)
    ));
    assert!(fixture.path().join("real").is_dir());
}

#[test]
fn remove_tree_handles_depth_beyond_path_limit() {
    let (fixture, start) = fixture();
    let mut reached = start.create_dirs(&plain("tree"), SHARED_DIR).expect("tree");
    let name = "d".repeat(100);
    for _ in 0..300 {
        rustix::fs::mkdirat(&reached, name.as_str(), Mode::RWXU).expect("mkdir");
        reached = reached.open_dir(&plain(&name)).expect("enter");
    }
    drop(reached);
    assert!(remove_tree(&start, &plain("tree")).expect("remove"));
    assert_eq!(std::fs::read_dir(fixture.path()).expect("list").count(), 0);
}

#[test]
fn remove_tree_handles_directory_beyond_one_batch() {
    let (fixture, start) = fixture();
    start
        .create_dirs(&plain("tree/inner"), SHARED_DIR)
        .expect("tree");
    for number in 0..BATCH + 10 {
        std::fs::File::create(fixture.path().join(format!("tree/inner/{number}"))).expect("file");
    }
    assert!(remove_tree(&start, &plain("tree")).expect("remove"));
}
