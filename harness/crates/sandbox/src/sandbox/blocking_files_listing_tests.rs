//! Tests of directory listings.

use super::*;

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
