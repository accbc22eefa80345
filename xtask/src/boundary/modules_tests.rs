//! Tests of the table of edges on a small crate.

use super::*;

fn crate_() -> Crate {
    let texts = [
        ("a/src/lib.rs", "mod b;\nmod c;\n"),
        ("a/src/b.rs", "//! Doc.\nuse crate::c::C;\n"),
        ("a/src/c.rs", "pub struct C;\n"),
    ];
    let texts = texts.map(|(path, text)| (path.into(), text.to_owned()));
    Crate::read("a", "a/src".into(), texts).unwrap()
}

fn problems(table: &str) -> Vec<String> {
    let rows = parse(table).unwrap().remove("a").unwrap_or_default();
    let mut violations = Vec::new();
    compare("a", top_edges(&crate_()), rows, &mut violations);
    violations.iter().map(ToString::to_string).collect()
}

#[test]
fn printed_table_is_exact() {
    let table = print(&[crate_()]);
    assert!(table.ends_with("\n[a]\nb: c\nc:\n"), "{table}");
    assert_eq!(problems(&table), Vec::<String>::new());
}

#[test]
fn edge_without_a_row_is_reported_where_it_is_used() {
    let found = problems("[a]\nb:\nc:\n");
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("a/src/b.rs:2: `b` may not name `c` in a: move the item"),
        "{found:?}"
    );
}

#[test]
fn row_without_target_is_reported() {
    for (table, cause) in [
        (
            "[a]\nb: c\nc: b\n",
            "`c` of a does not name `b`: remove it from",
        ),
        ("[a]\nb: c\nc:\nd:\n", "a has no module `d`: remove it from"),
        ("[a]\nb: c\n", "no row for module `c` of a"),
    ] {
        let found = problems(table);
        assert_eq!(found.len(), 1, "{table}");
        assert!(found[0].contains(cause), "{found:?}");
    }
}

#[test]
fn malformed_table_is_rejected_with_its_line() {
    for (text, cause) in [
        ("b: c", ":1: expected"),
        ("[a]\nb c", ":2: expected"),
        ("[a]\nb: c\nb:", ":3: b is listed twice"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(cause), "{error}");
    }
}
