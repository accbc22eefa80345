//! Blocking file operations, as a tool or a route uses them.

#[path = "blocking_files_edit_tests.rs"]
mod edit;
#[path = "blocking_files_listing_tests.rs"]
mod listing;

use std::os::unix::ffi::OsStrExt;

use super::super::pending_file::Durability;
use super::super::safe_fs::Resolver;
use super::super::test_support::{TestHome, names_in, path, thread_id, work};
use super::*;
use crate::sandbox::{Listing, Root};

fn fixture() -> TestHome {
    TestHome::new(Resolver::detect())
}

fn fault<T: std::fmt::Debug>(result: Result<T, FileError>) -> FileFailure {
    match result.expect_err("must fail") {
        FileError::At { fault, .. } => fault,
        refused => panic!("rejected as a path: {refused}"),
    }
}

fn content(files: &BlockingFiles, path: &VirtualPath) -> String {
    match files.read_text(path, LineRange::ALL).expect("readable") {
        TextRead::Text { text, .. } => text,
        TextRead::Empty => String::new(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn write_creates_directories_and_read_returns_content() {
    let fixture = fixture();
    let files = fixture.files.blocking();
    let report = path("/mnt/user-data/outputs/2026/june/report.md");
    files
        .write_text(&report, "one\ntwo\n", WriteMode::Replace)
        .expect("write");
    assert_eq!(content(files, &report), "one\ntwo\n");
    files
        .write_text(&report, "three", WriteMode::Append)
        .expect("append");
    assert_eq!(content(files, &report), "one\ntwo\nthree");
    files
        .write_text(&report, "", WriteMode::Replace)
        .expect("write");
    assert_eq!(
        files.read_text(&report, LineRange::ALL).expect("read"),
        TextRead::Empty
    );
    files
        .write_text(&work("log.txt"), "first", WriteMode::Append)
        .expect("append makes the file");
    assert_eq!(content(files, &work("log.txt")), "first");
    assert_eq!(names_in(&fixture.workspace()), ["log.txt"]);
}

#[test]
fn read_before_any_write_is_not_found_and_roots_are_empty() {
    let fixture = fixture();
    let files = fixture.files.blocking();
    assert!(matches!(
        fault(files.read_text(&work("a"), LineRange::ALL)),
        FileFailure::NotFound
    ));
    assert!(matches!(
        fault(files.list(&work("a"), 2)),
        FileFailure::NotFound
    ));
    for old in ["x", ""] {
        assert!(
            matches!(
                fault(files.replace(&work("a"), old, "y", Occurrences::All)),
                FileFailure::NotFound
            ),
            "{old:?}"
        );
    }
    assert_eq!(files.stat(&work("a")).expect("stat"), None);
    assert!(!files.remove_file(&work("a")).expect("remove"));
    for root in Root::ALL {
        let root = VirtualPath::of_root(root);
        assert_eq!(files.list(&root, 2).expect("list"), Listing::default());
        assert!(files.read_dir(&root).expect("read dir").is_empty());
        let stat = files.stat(&root).expect("stat").expect("a root exists");
        assert_eq!(stat.kind, NodeKind::Directory);
    }
    assert!(
        !fixture.base().join("home").exists(),
        "stat creates nothing"
    );
}

#[test]
fn read_text_rejects_directories_binaries_and_large_files() {
    let limits = FileLimits {
        max_text_bytes: 100,
        ..FileLimits::default()
    };
    let fixture = TestHome::with_limits(Resolver::detect(), limits);
    let files = fixture.files.blocking();
    files
        .write_bytes(&work("d/binary"), &[0xff, 0xfe, 0], Durability::Cached)
        .expect("write");
    files
        .write_bytes(&work("large"), &[b'x'; 101], Durability::Cached)
        .expect("write");
    assert!(matches!(
        fault(files.read_text(&work("d"), LineRange::ALL)),
        FileFailure::IsDirectory
    ));
    assert!(matches!(
        fault(files.read_text(&work("d/binary"), LineRange::ALL)),
        FileFailure::NotUtf8
    ));
    let too_large = fault(files.read_text(&work("large"), LineRange::ALL));
    assert!(matches!(
        too_large,
        FileFailure::TooLarge {
            bytes: 101,
            limit: 100
        }
    ));
    assert!(matches!(
        fault(files.write_text(&work("d"), "x", WriteMode::Replace)),
        FileFailure::IsDirectory
    ));
    assert!(matches!(
        fault(files.write_text(&work("d"), "x", WriteMode::Append)),
        FileFailure::IsDirectory
    ));
    let root = VirtualPath::of_root(Root::Workspace);
    assert!(matches!(
        fault(files.write_text(&root, "x", WriteMode::Replace)),
        FileFailure::IsDirectory
    ));
    assert!(matches!(
        fault(files.remove_file(&work("d"))),
        FileFailure::IsDirectory
    ));
    assert!(matches!(
        fault(files.write_text(&work("large/x"), "x", WriteMode::Replace)),
        FileFailure::NotDirectory
    ));
    assert!(matches!(
        fault(files.list(&work("large"), 2)),
        FileFailure::NotDirectory
    ));
}

#[test]
fn files_of_threads_and_users_are_isolated() {
    let fixture = fixture();
    let own = fixture.files.blocking();
    own.write_text(&work("secret"), "mine", WriteMode::Replace)
        .expect("write");
    for (user, thread) in [("default", "t2"), ("other", "t1")] {
        let foreign = fixture.home.thread(user, &thread_id(thread));
        assert!(matches!(
            fault(
                foreign
                    .blocking()
                    .read_text(&work("secret"), LineRange::ALL)
            ),
            FileFailure::NotFound
        ));
    }
}

#[test]
fn errors_never_contain_a_host_path() {
    let fixture = TestHome::with_roots(Resolver::detect());
    let files = fixture.files.blocking();
    std::os::unix::fs::symlink(fixture.outside(), fixture.workspace().join("link")).expect("link");
    let errors = [
        files
            .read_text(&work("link/secret.txt"), LineRange::ALL)
            .map(|_| ()),
        files
            .read_text(&work("nothing"), LineRange::ALL)
            .map(|_| ()),
        files.write_text(&work("link"), "x", WriteMode::Replace),
        files.list(&work("link"), 2).map(|_| ()),
    ];
    for error in errors {
        let error = error.expect_err("must fail");
        let base = fixture.base().to_string_lossy();
        assert!(
            !error.to_string().contains(&*base) && !format!("{error:?}").contains(&*base),
            "{error:?}"
        );
    }
}

#[test]
fn acp_workspace_is_read_only() {
    let fixture = fixture();
    let files = fixture.files.blocking();
    let remaining = fixture
        .home
        .readable("/mnt/acp-workspace/src/a.txt")
        .expect("readable");
    let root = fixture
        .home
        .readable("/mnt/acp-workspace")
        .expect("readable");
    assert!(
        files.list(&root, 2).expect("listed").lines.is_empty(),
        "no agent has worked there"
    );
    let folder = files.dirs().host_path(Root::AcpWorkspace);
    std::fs::create_dir_all(folder.join("src")).expect("made");
    std::fs::write(folder.join("src/a.txt"), "done").expect("written");
    std::os::unix::fs::symlink(fixture.outside(), folder.join("link")).expect("linked");
    assert_eq!(content(files, &remaining), "done");
    let listed = [
        "/mnt/acp-workspace/link",
        "/mnt/acp-workspace/src/",
        "/mnt/acp-workspace/src/a.txt",
    ];
    assert_eq!(
        files.list(&root, 2).expect("listed").lines,
        listed,
        "a link is listed and not followed"
    );
    let linked = fixture
        .home
        .readable("/mnt/acp-workspace/link/secret.txt")
        .expect("a path");
    assert!(matches!(
        fault(files.read_text(&linked, LineRange::ALL)),
        FileFailure::Symlink
    ));
    assert!(
        fixture
            .home
            .writable("/mnt/acp-workspace/src/a.txt")
            .is_err()
    );
    assert!(matches!(
        fault(files.write_text(&remaining, "x", WriteMode::Replace)),
        FileFailure::ReadOnly
    ));
    assert!(matches!(
        fault(files.remove_file(&remaining)),
        FileFailure::ReadOnly
    ));
    assert_eq!(content(files, &remaining), "done");
}
