//! Blocking file operations, as a tool or a route uses them.

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
fn replace_is_limited_and_append_is_not() {
    let fixture = fixture();
    let files = fixture.files.blocking();
    let at_the_limit = "x".repeat(80 * 1024);
    files
        .write_text(&work("a"), &at_the_limit, WriteMode::Replace)
        .expect("at the limit");
    let too_long = files.write_text(&work("b"), &format!("{at_the_limit}y"), WriteMode::Replace);
    let text = too_long.as_ref().expect_err("too long").to_string();
    assert!(
        text.contains("81921 bytes") && text.contains("append"),
        "{text}"
    );
    assert!(matches!(
        fault(too_long),
        FileFailure::WriteTooLong { limit: 81920, .. }
    ));
    files
        .write_text(&work("a"), &format!("{at_the_limit}y"), WriteMode::Append)
        .expect("append");
    let unlimited = FileLimits {
        max_write_bytes: 0,
        ..FileLimits::default()
    };
    let fixture = TestHome::with_limits(Resolver::detect(), unlimited);
    let long = "x".repeat(200_000);
    fixture
        .files
        .blocking()
        .write_text(&work("a"), &long, WriteMode::Replace)
        .expect("no limit");
}

#[test]
fn replace_changes_first_or_all_occurrences() {
    let fixture = fixture();
    let files = fixture.files.blocking();
    let file = work("poem.txt");
    files
        .write_text(&file, "rose is a rose is a rose", WriteMode::Replace)
        .expect("write");
    assert_eq!(
        files
            .replace(&file, "rose", "tulip", Occurrences::First)
            .expect("first"),
        1
    );
    assert_eq!(content(files, &file), "tulip is a rose is a rose");
    assert_eq!(
        files
            .replace(&file, "rose", "lily", Occurrences::All)
            .expect("all"),
        2
    );
    assert_eq!(content(files, &file), "tulip is a lily is a lily");
    assert!(matches!(
        fault(files.replace(&file, "rose", "x", Occurrences::All)),
        FileFailure::TextNotFound
    ));
    assert_eq!(
        files
            .replace(&file, "", "x", Occurrences::All)
            .expect("nothing to do"),
        0
    );
    assert_eq!(content(files, &file), "tulip is a lily is a lily");
}

#[test]
fn edit_beyond_size_limit_is_rejected() {
    let limits = FileLimits {
        max_text_bytes: 1000,
        ..FileLimits::default()
    };
    let fixture = TestHome::with_limits(Resolver::detect(), limits);
    let files = fixture.files.blocking();
    files
        .write_text(&work("a"), &"x".repeat(900), WriteMode::Replace)
        .expect("write");
    let grown = files.replace(&work("a"), "x", &"y".repeat(500), Occurrences::All);
    assert!(matches!(
        fault(grown),
        FileFailure::TooLarge {
            bytes: 450_000,
            limit: 1000
        }
    ));
    assert_eq!(content(files, &work("a")), "x".repeat(900));
}

#[test]
fn listing_is_sorted_two_levels_deep_without_ignored_names() {
    let fixture = fixture();
    let files = fixture.files.blocking();
    for file in [
        "b.txt",
        "a/inner/deep.txt",
        "a/x.md",
        "a.b",
        ".git/config",
        "a/node_modules/m.js",
        "run.log",
        ".hidden",
    ] {
        files
            .write_text(&work(file), "x", WriteMode::Replace)
            .expect("write");
    }
    let root = VirtualPath::of_root(Root::Workspace);
    let expected = [".hidden", "a.b", "a/", "a/inner/", "a/x.md", "b.txt"];
    let expected: Vec<String> = expected
        .iter()
        .map(|name| format!("{root}/{name}"))
        .collect();
    assert_eq!(files.list(&root, 2).expect("list").lines, expected);
    let below = files.list(&work("a"), 2).expect("list").lines;
    let expected = ["inner/", "inner/deep.txt", "x.md"].map(|name| format!("{}/{name}", work("a")));
    assert_eq!(below, expected);
    assert!(files.list(&root, 0).expect("list").lines.is_empty());
}

#[test]
fn listing_at_limit_is_marked_incomplete() {
    let limits = FileLimits {
        max_entries: 3,
        ..FileLimits::default()
    };
    let fixture = TestHome::with_limits(Resolver::detect(), limits);
    let files = fixture.files.blocking();
    for name in ["a", "b", "c", "d"] {
        files
            .write_text(&work(name), "x", WriteMode::Replace)
            .expect("write");
    }
    let listing = files
        .list(&VirtualPath::of_root(Root::Workspace), 2)
        .expect("list");
    assert_eq!((listing.lines.len(), listing.incomplete), (3, true));
}

#[test]
fn listing_escapes_names_that_break_lines() {
    let fixture = TestHome::with_roots(Resolver::detect());
    for name in [&b"two\nlines"[..], b"not-utf8-\xff", b"\xe2\x80\xaegpj.exe"] {
        std::fs::write(
            fixture.workspace().join(std::ffi::OsStr::from_bytes(name)),
            "x",
        )
        .expect("write");
    }
    let root = VirtualPath::of_root(Root::Workspace);
    let lines = fixture.files.blocking().list(&root, 2).expect("list").lines;
    let expected =
        ["\\u{202e}gpj.exe", "not-utf8-\u{fffd}", "two\\nlines"].map(|n| format!("{root}/{n}"));
    assert_eq!(lines, expected);
    assert!(
        fixture
            .files
            .blocking()
            .read_dir(&root)
            .expect("read dir")
            .is_empty()
    );
}

#[test]
fn read_dir_returns_paths_with_metadata() {
    let fixture = fixture();
    let files = fixture.files.blocking();
    let upload = path("/mnt/user-data/uploads/a.pdf");
    files
        .write_bytes(&upload, b"12345", Durability::Synced)
        .expect("write");
    let unfinished = files
        .begin_write(&path("/mnt/user-data/uploads/b.pdf"))
        .expect("begin");
    let items = files
        .read_dir(&VirtualPath::of_root(Root::Uploads))
        .expect("read dir");
    assert_eq!(items.len(), 1);
    assert_eq!(
        (&items[0].path, items[0].stat.bytes, items[0].stat.kind),
        (&upload, 5, NodeKind::File)
    );
    let stat = files.stat(&upload).expect("stat").expect("there");
    assert_eq!(stat, items[0].stat);
    let (_, metadata) = files.open_read(&upload).expect("open");
    assert_eq!(stat.modified, metadata.modified().ok());
    drop(unfinished);
    assert!(files.remove_file(&upload).expect("remove"));
    assert_eq!(files.stat(&upload).expect("stat"), None);
}

#[test]
fn files_of_threads_and_users_are_isolated() {
    let fixture = fixture();
    let mine = fixture.files.blocking();
    mine.write_text(&work("secret"), "mine", WriteMode::Replace)
        .expect("write");
    for (user, thread) in [("default", "t2"), ("other", "t1")] {
        let theirs = fixture.home.thread(user, &thread_id(thread));
        assert!(matches!(
            fault(theirs.blocking().read_text(&work("secret"), LineRange::ALL)),
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
fn concurrent_edits_of_one_file_all_apply() {
    let fixture = fixture();
    let file = work("tally");
    fixture
        .files
        .blocking()
        .write_text(&file, "#", WriteMode::Replace)
        .expect("write");
    std::thread::scope(|scope| {
        for letter in ["a", "b", "c", "d"] {
            let (fixture, file) = (&fixture, &file);
            scope.spawn(move || {
                let files = fixture.home.thread("default", &thread_id("t1"));
                for _ in 0..25 {
                    let edit = files.blocking().replace(
                        file,
                        "#",
                        &format!("{letter}#"),
                        Occurrences::First,
                    );
                    edit.expect("edit");
                }
            });
        }
    });
    assert_eq!(content(fixture.files.blocking(), &file).len(), 101);
}

#[test]
fn replace_if_requires_expected_content() {
    let fixture = fixture();
    let files = fixture.files.blocking();
    let report = path("/mnt/user-data/outputs/report.md");
    let replace = |new: &str, old: &'static str| {
        files.replace_if(&report, new, Durability::Synced, move |present| {
            present == old
        })
    };
    assert!(matches!(fault(replace("new", "")), FileFailure::NotFound));
    files
        .write_text(&report, "old", WriteMode::Replace)
        .expect("write");
    assert!(!replace("new", "other").expect("compared"));
    assert_eq!(content(files, &report), "old");
    assert!(replace("new", "old").expect("compared"));
    assert_eq!(content(files, &report), "new");
    files
        .write_bytes(&report, &[0xff], Durability::Cached)
        .expect("write");
    assert!(matches!(
        fault(replace("text", "new")),
        FileFailure::NotUtf8
    ));
}

#[test]
fn acp_workspace_is_read_only() {
    let fixture = fixture();
    let files = fixture.files.blocking();
    let left = fixture
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
    assert_eq!(content(files, &left), "done");
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
        fault(files.write_text(&left, "x", WriteMode::Replace)),
        FileFailure::ReadOnly
    ));
    assert!(matches!(
        fault(files.remove_file(&left)),
        FileFailure::ReadOnly
    ));
    assert_eq!(content(files, &left), "done");
}
