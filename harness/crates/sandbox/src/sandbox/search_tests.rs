//! Searches in a thread's files.

use super::*;
use crate::sandbox::WriteMode;
use crate::sandbox::safe_fs::Resolver;
use crate::sandbox::test_support::{CANARY, TestHome, path, work};

fn filled() -> TestHome {
    let fixture = TestHome::with_roots(Resolver::detect());
    for (name, text) in [
        ("a.md", "One\ntwo\n"),
        ("src/b.rs", "fn one() {}\nlet x = (1);\n"),
        ("src/deep/c.rs", "ONE more\n"),
        ("node_modules/d.rs", "one\n"),
        ("long.txt", &format!("one {}\none\n", "x".repeat(2100))),
    ] {
        fixture
            .files
            .blocking()
            .write_text(&work(name), text, WriteMode::Replace)
            .unwrap();
    }
    std::fs::write(fixture.workspace().join("binary"), b"one\0one").unwrap();
    std::os::unix::fs::symlink(fixture.outside(), fixture.workspace().join("out")).unwrap();
    std::os::unix::fs::symlink(
        fixture.outside().join("secret.txt"),
        fixture.workspace().join("secret.txt"),
    )
    .unwrap();
    fixture
}

fn glob_rows(fixture: &TestHome, pattern: &str, with_directories: bool) -> Vec<String> {
    let pattern = NamePattern::parse(pattern).unwrap();
    let found = fixture
        .files
        .blocking()
        .glob(
            &path("/mnt/user-data/workspace"),
            &pattern,
            with_directories,
            10,
            &CancellationToken::new(),
        )
        .unwrap();
    assert!(!found.incomplete);
    found
        .rows
        .into_iter()
        .map(|row| row.replace("/mnt/user-data/workspace/", ""))
        .collect()
}

fn grep_rows(fixture: &TestHome, at: &str, query: &LineQuery, max_rows: usize) -> SearchResults {
    let mut found = fixture
        .files
        .blocking()
        .grep(&path(at), query, max_rows, &CancellationToken::new())
        .unwrap();
    found
        .rows
        .iter_mut()
        .for_each(|row| *row = row.replace("/mnt/user-data/workspace/", ""));
    found
}

#[test]
fn glob_matches_names_without_following_links() {
    let fixture = filled();
    assert_eq!(
        glob_rows(&fixture, "**/*.rs", false),
        ["src/b.rs", "src/deep/c.rs"]
    );
    assert_eq!(
        glob_rows(&fixture, "**/*.md", false),
        ["a.md"],
        "also at the root"
    );
    assert_eq!(glob_rows(&fixture, "*.rs", false), [""; 0]);
    assert_eq!(glob_rows(&fixture, "src/*", true), ["src/b.rs", "src/deep"]);
    assert_eq!(glob_rows(&fixture, "**/secret.txt", true), [""; 0]);
    assert!(NamePattern::parse("a{").is_err());
}

#[test]
fn add_lines_stops_on_timeout_or_cancel() {
    let query = LineQuery::parse("one", false, false, None).unwrap();
    let text = "one\n".repeat(10);
    let stop = CancellationToken::new();
    let mut found = SearchResults::default();
    add_lines(
        text.as_bytes(),
        "a",
        &query,
        99,
        Bounds {
            stop: &stop,
            until: Instant::now(),
        },
        &mut found,
    )
    .unwrap();
    assert_eq!((found.rows.len(), found.incomplete), (0, true));
    let bounds = Bounds::from_now(&stop);
    let mut found = SearchResults::default();
    add_lines(text.as_bytes(), "a", &query, 99, bounds, &mut found).unwrap();
    assert_eq!((found.rows.len(), found.incomplete), (10, false));
    stop.cancel();
    assert!(matches!(
        add_lines(text.as_bytes(), "a", &query, 99, bounds, &mut found),
        Err(FileFailure::Aborted)
    ));
}

#[test]
fn grep_searches_text_files_only() {
    let fixture = filled();
    let query =
        |pattern: &str, literal, case| LineQuery::parse(pattern, literal, case, None).unwrap();
    let workspace = "/mnt/user-data/workspace";
    let found = grep_rows(&fixture, workspace, &query("\\bone\\b", false, false), 10);
    assert_eq!(
        found.rows,
        [
            "a.md:1: One",
            "long.txt:2: one",
            "src/b.rs:1: fn one() {}",
            "src/deep/c.rs:1: ONE more"
        ]
    );
    assert_eq!(
        grep_rows(&fixture, workspace, &query("(1)", true, true), 10).rows,
        ["src/b.rs:2: let x = (1);"]
    );
    assert_eq!(
        grep_rows(
            &fixture,
            &format!("{workspace}/a.md"),
            &query("t.o", false, true),
            10
        )
        .rows
        .len(),
        1
    );
    let files = Some(NamePattern::parse("*.rs").unwrap());
    let in_rust = LineQuery::parse("one", false, false, files).unwrap();
    assert_eq!(
        grep_rows(&fixture, workspace, &in_rust, 10).rows.len(),
        2,
        "a name without a slash matches files in any directory"
    );
    let cut = grep_rows(&fixture, workspace, &in_rust, 1);
    assert!(cut.incomplete && cut.rows.len() == 1);
    assert_eq!(
        grep_rows(&fixture, workspace, &query(CANARY, true, true), 10).rows,
        [""; 0]
    );
    assert!(LineQuery::parse("(", false, false, None).is_err());
}

#[test]
fn expensive_name_patterns_are_rejected() {
    assert!(NamePattern::parse("src/{a,{b,c}}/*.rs").is_ok());
    for pattern in [
        "{".repeat(100_000) + "a" + &"}".repeat(100_000),
        "{".repeat(11) + "a" + &"}".repeat(11),
        "a".repeat(2_000),
    ] {
        assert!(
            NamePattern::parse(&pattern).is_err(),
            "{} bytes",
            pattern.len()
        );
    }
    let costly: Vec<String> = (0..100).map(|n| format!("{n}[ab]{{999}}z")).collect();
    assert!(LineQuery::parse(&costly.join("|"), false, true, None).is_err());
}

#[test]
fn long_regular_expression_is_rejected() {
    let costly = format!("(?i){}", r"[\p{L}\p{N}]?".repeat(100));
    let refused = LineQuery::parse(&costly, false, true, None).err().unwrap();
    assert_eq!(refused, "the pattern is longer than 1024 bytes");
}

#[test]
fn rows_escape_names_that_break_lines() {
    let fixture = TestHome::with_roots(Resolver::detect());
    let hostile = fixture.workspace().join("a\n2. etc\u{202e}");
    std::fs::create_dir(&hostile).unwrap();
    std::fs::write(hostile.join("b"), "found").unwrap();
    assert_eq!(
        glob_rows(&fixture, "**/b", false),
        ["a\\n2. etc\\u{202e}/b"]
    );
    let query = LineQuery::parse("found", true, true, None).unwrap();
    assert_eq!(
        grep_rows(&fixture, "/mnt/user-data/workspace", &query, 10).rows,
        [""; 0],
        "files that no virtual path can express are skipped"
    );
}

#[test]
fn cancelled_search_ends() {
    let fixture = filled();
    let stop = CancellationToken::new();
    stop.cancel();
    let (files, workspace) = (fixture.files.blocking(), path("/mnt/user-data/workspace"));
    let found = files.glob(
        &workspace,
        &NamePattern::parse("**").unwrap(),
        true,
        10,
        &stop,
    );
    assert!(
        matches!(
            found,
            Err(FileError::At {
                fault: FileFailure::Aborted,
                ..
            })
        ),
        "{found:?}"
    );
    let found = files.grep(
        &workspace,
        &LineQuery::parse("one", true, true, None).unwrap(),
        10,
        &stop,
    );
    assert!(
        matches!(
            found,
            Err(FileError::At {
                fault: FileFailure::Aborted,
                ..
            })
        ),
        "{found:?}"
    );
}
