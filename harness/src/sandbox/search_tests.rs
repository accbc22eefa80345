//! Searches in a thread's files.

use super::*;
use crate::sandbox::WriteMode;
use crate::sandbox::safe_fs::Resolver;
use crate::sandbox::test_support::{CANARY, Place, path, work};

fn filled() -> Place {
    let place = Place::furnished(Resolver::detect());
    for (name, text) in [
        ("a.md", "One\ntwo\n"),
        ("src/b.rs", "fn one() {}\nlet x = (1);\n"),
        ("src/deep/c.rs", "ONE more\n"),
        ("node_modules/d.rs", "one\n"),
        ("long.txt", &format!("one {}\none\n", "x".repeat(2100))),
    ] {
        place
            .files
            .blocking()
            .write_text(&work(name), text, WriteMode::Replace)
            .unwrap();
    }
    std::fs::write(place.workspace().join("binary"), b"one\0one").unwrap();
    std::os::unix::fs::symlink(place.outside(), place.workspace().join("out")).unwrap();
    std::os::unix::fs::symlink(
        place.outside().join("secret.txt"),
        place.workspace().join("secret.txt"),
    )
    .unwrap();
    place
}

fn globbed(place: &Place, pattern: &str, with_directories: bool) -> Vec<String> {
    let pattern = NamePattern::parse(pattern).unwrap();
    let found = place
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

fn grepped(place: &Place, at: &str, query: &LineQuery, most: usize) -> Found {
    let mut found = place
        .files
        .blocking()
        .grep(&path(at), query, most, &CancellationToken::new())
        .unwrap();
    found
        .rows
        .iter_mut()
        .for_each(|row| *row = row.replace("/mnt/user-data/workspace/", ""));
    found
}

#[test]
fn names_are_found_by_pattern_and_links_are_not_followed() {
    let place = filled();
    assert_eq!(
        globbed(&place, "**/*.rs", false),
        ["src/b.rs", "src/deep/c.rs"]
    );
    assert_eq!(
        globbed(&place, "**/*.md", false),
        ["a.md"],
        "also at the root"
    );
    assert_eq!(globbed(&place, "*.rs", false), [""; 0]);
    assert_eq!(globbed(&place, "src/*", true), ["src/b.rs", "src/deep"]);
    assert_eq!(globbed(&place, "**/secret.txt", true), [""; 0]);
    assert!(NamePattern::parse("a{").is_err());
}

#[test]
fn a_search_ends_between_two_lines_when_its_time_is_over_or_nobody_waits_for_it() {
    let query = LineQuery::parse("one", false, false, None).unwrap();
    let text = "one\n".repeat(10);
    let stop = CancellationToken::new();
    let mut found = Found::default();
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
    let mut found = Found::default();
    add_lines(text.as_bytes(), "a", &query, 99, bounds, &mut found).unwrap();
    assert_eq!((found.rows.len(), found.incomplete), (10, false));
    stop.cancel();
    assert!(matches!(
        add_lines(text.as_bytes(), "a", &query, 99, bounds, &mut found),
        Err(Fault::Aborted)
    ));
}

#[test]
fn lines_are_found_in_text_files_alone() {
    let place = filled();
    let query =
        |pattern: &str, literal, case| LineQuery::parse(pattern, literal, case, None).unwrap();
    let workspace = "/mnt/user-data/workspace";
    let found = grepped(&place, workspace, &query("\\bone\\b", false, false), 10);
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
        grepped(&place, workspace, &query("(1)", true, true), 10).rows,
        ["src/b.rs:2: let x = (1);"]
    );
    assert_eq!(
        grepped(
            &place,
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
        grepped(&place, workspace, &in_rust, 10).rows.len(),
        2,
        "a name without a slash means files anywhere"
    );
    let cut = grepped(&place, workspace, &in_rust, 1);
    assert!(cut.incomplete && cut.rows.len() == 1);
    assert_eq!(
        grepped(&place, workspace, &query(CANARY, true, true), 10).rows,
        [""; 0]
    );
    assert!(LineQuery::parse("(", false, false, None).is_err());
}

#[test]
fn patterns_that_would_cost_too_much_to_read_are_refused() {
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
fn an_expression_that_takes_long_to_read_is_refused_by_its_length() {
    let costly = format!("(?i){}", r"[\p{L}\p{N}]?".repeat(100));
    let refused = LineQuery::parse(&costly, false, true, None).err().unwrap();
    assert_eq!(refused, "the pattern is longer than 1024 bytes");
}

#[test]
fn names_that_would_break_or_disguise_a_row_are_made_visible() {
    let place = Place::furnished(Resolver::detect());
    let hostile = place.workspace().join("a\n2. etc\u{202e}");
    std::fs::create_dir(&hostile).unwrap();
    std::fs::write(hostile.join("b"), "found").unwrap();
    assert_eq!(globbed(&place, "**/b", false), ["a\\n2. etc\\u{202e}/b"]);
    let query = LineQuery::parse("found", true, true, None).unwrap();
    assert_eq!(
        grepped(&place, "/mnt/user-data/workspace", &query, 10).rows,
        [""; 0],
        "no path leads to them"
    );
}

#[test]
fn a_search_that_nobody_waits_for_ends() {
    let place = filled();
    let stop = CancellationToken::new();
    stop.cancel();
    let (files, workspace) = (place.files.blocking(), path("/mnt/user-data/workspace"));
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
                fault: Fault::Aborted,
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
                fault: Fault::Aborted,
                ..
            })
        ),
        "{found:?}"
    );
}
