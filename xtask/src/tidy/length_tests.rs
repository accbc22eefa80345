//! Tests of the limit, the list of caps, and their violations.

use super::*;

fn file(path: &str, lines: usize) -> SourceFile {
    SourceFile {
        path: path.into(),
        text: "\n".repeat(lines),
    }
}

fn problem(list: &str, path: &str, lines: usize) -> Option<String> {
    let mut oversize = Oversize::parse(list).unwrap();
    oversize
        .check(&file(path, lines))
        .map(|found| found.to_string())
}

#[test]
fn file_over_limit_is_reported() {
    assert_eq!(problem("", "app/a.rs", LIMIT), None);
    assert!(
        problem("", "app/a.rs", LIMIT + 1)
            .unwrap()
            .starts_with("app/a.rs: 401 lines")
    );
}

#[test]
fn wiring_files_have_a_lower_limit() {
    let path = "app/server/src/wiring/stores.rs";
    assert_eq!(problem("", path, WIRING_LIMIT), None);
    assert!(
        problem("", path, WIRING_LIMIT + 1)
            .unwrap()
            .ends_with("101 lines, more than 100: split it by subject")
    );
    assert_eq!(problem("", "app/server/src/wiring_stores.rs", LIMIT), None);
}

#[test]
fn migrations_have_no_limit() {
    let path = "app/stores/src/db/migration/m1.rs";
    assert_eq!(problem("", path, 5 * LIMIT), None);
}

#[test]
fn test_file_over_limit_is_reported() {
    for path in ["app/a_tests.rs", "tests/it/a.rs"] {
        assert_eq!(problem("", path, LIMIT), None, "{path}");
        assert!(problem("", path, LIMIT + 1).is_some(), "{path}");
    }
}

#[test]
fn cap_must_equal_file_length() {
    let list = "# comment\n\napp/a.rs 500 one long table\n";
    assert_eq!(problem(list, "app/a.rs", 500), None);
    assert!(
        problem(list, "app/a.rs", 501)
            .unwrap()
            .contains("more than its cap of 500")
    );
    assert!(
        problem(list, "app/a.rs", 499)
            .unwrap()
            .contains("lower its cap")
    );
    assert!(
        problem(list, "app/a.rs", LIMIT)
            .unwrap()
            .contains("fits again")
    );
}

#[test]
fn missing_listed_file_is_reported() {
    let violations: Vec<_> = Oversize::parse("app/a.rs 500 why")
        .unwrap()
        .missing_files()
        .collect();
    assert_eq!(violations.len(), 1);
    assert!(
        violations[0]
            .to_string()
            .contains("app/a.rs does not exist")
    );
}

#[test]
fn malformed_list_is_rejected_with_its_line() {
    for (text, cause) in [
        ("app/a.rs 500", ":1: expected"),
        ("#\napp/a.rs many why", ":2: the cap"),
        (
            "app/a.rs 500 why\napp/a.rs 500 why",
            ":2: app/a.rs is listed twice",
        ),
    ] {
        let error = Oversize::parse(text).unwrap_err().to_string();
        assert!(error.contains(cause), "{error}");
    }
}
