//! Whole trees disappear; what they point at stays.

use std::os::unix::fs::{PermissionsExt, symlink};

use rustix::fs::Mode;

use super::super::safe_fs::{Resolver, SHARED_DIR};
use super::*;

fn plain(raw: &str) -> RelativePath {
    RelativePath::parse(raw).expect("plain path")
}

fn place() -> (tempfile::TempDir, SafeDir) {
    let place = tempfile::tempdir().expect("temporary directory");
    let start = SafeDir::open_trusted(place.path(), Resolver::detect()).expect("open");
    (place, start)
}

#[test]
fn removes_files_links_and_nested_directories_and_nothing_else() {
    let (place, start) = place();
    let at = |name: &str| place.path().join(name);
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

/// As root nothing is closed, so this shows the most when other users run it.
#[test]
fn directories_that_are_closed_to_their_owner_are_removed() {
    let (place, start) = place();
    let at = |name: &str| place.path().join(name);
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
fn refuses_to_start_at_a_link() {
    let (place, start) = place();
    std::fs::create_dir(place.path().join("real")).expect("dir");
    symlink("real", place.path().join("link")).expect("link");
    assert!(matches!(
        remove_tree(&start, &plain("link")),
        Err(Fault::Symlink)
    ));
    assert!(place.path().join("real").is_dir());
}

#[test]
fn a_tree_deeper_than_any_path_is_removed() {
    let (place, start) = place();
    let mut reached = start.create_dirs(&plain("tree"), SHARED_DIR).expect("tree");
    let name = "d".repeat(100);
    for _ in 0..300 {
        rustix::fs::mkdirat(&reached, name.as_str(), Mode::RWXU).expect("mkdir");
        reached = reached.open_dir(&plain(&name)).expect("enter");
    }
    drop(reached);
    assert!(remove_tree(&start, &plain("tree")).expect("remove"));
    assert_eq!(std::fs::read_dir(place.path()).expect("list").count(), 0);
}

#[test]
fn a_directory_larger_than_one_batch_is_removed() {
    let (place, start) = place();
    start
        .create_dirs(&plain("tree/inner"), SHARED_DIR)
        .expect("tree");
    for number in 0..BATCH + 10 {
        std::fs::File::create(place.path().join(format!("tree/inner/{number}"))).expect("file");
    }
    assert!(remove_tree(&start, &plain("tree")).expect("remove"));
}
