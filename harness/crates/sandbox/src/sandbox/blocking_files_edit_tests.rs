//! Tests of replacements and appends, and of concurrent edits.

use super::*;

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
