//! Tests of the edges between small files.

use super::*;

/// Returns the edges of a crate as `from -> to`.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let texts = files
        .iter()
        .map(|(path, text)| (format!("a/src/{path}").into(), (*text).to_owned()));
    let crate_ = Crate::read("a", "a/src".into(), texts).unwrap();
    let name = |place: usize| crate_.modules[place].file.as_str();
    edges(&crate_)
        .iter()
        .map(|edge| format!("{} -> {}", name(edge.from), name(edge.to)))
        .collect()
}

#[test]
fn edge_leads_to_the_file_that_defines_the_item() {
    let facade = ("b/mod.rs", "mod c;\nmod d;\npub use c::C;\npub use d::*;\n");
    let parts = [
        facade,
        ("b/c.rs", "pub struct C;"),
        ("b/d.rs", "pub fn act() {}"),
    ];
    for (text, target) in [
        ("use crate::b::C;", "b/c.rs"),
        ("fn f() { crate::b::C::new() }", "b/c.rs"),
        ("use crate::b;\nfn f() { b::act() }", "b/d.rs"),
        ("use super::b::{c::C};", "b/c.rs"),
        ("mod inner { use super::super::b::C; }", "b/c.rs"),
    ] {
        let mut files = parts.to_vec();
        files.push(("a.rs", text));
        let edges = found(&files);
        assert_eq!(edges, [format!("a.rs -> {target}")], "{text}");
    }
}

#[test]
fn declarations_and_own_re_exports_are_no_edges() {
    let files = [
        ("lib.rs", "mod b;\npub use b::C;"),
        ("b/mod.rs", "mod c;\npub use c::C;\npub struct B;"),
        ("b/c.rs", "use super::B;\npub struct C;"),
    ];
    assert_eq!(found(&files), ["b/c.rs -> b/mod.rs"]);
}

#[test]
fn re_export_of_a_sibling_is_an_edge() {
    let files = [("b.rs", "pub use crate::c::C;"), ("c.rs", "pub struct C;")];
    assert_eq!(found(&files), ["b.rs -> c.rs"]);
}

#[test]
fn other_crates_and_test_files_are_no_edges() {
    let files = [
        ("lib.rs", "pub use other::clock;\n#[cfg(test)] mod helper;"),
        ("b.rs", "use crate::clock::Now;\nuse other::b::B;"),
        ("b_tests.rs", "use crate::c::C;"),
        ("helper.rs", "use crate::c::C;"),
        ("c.rs", "pub struct C;"),
    ];
    assert_eq!(found(&files), Vec::<String>::new());
}

#[test]
fn nodes_that_reach_each_other_form_a_circle() {
    let edges = BTreeSet::from([(1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (5, 4), (5, 6)]);
    assert_eq!(circles(&edges), [vec![1, 2, 3], vec![4, 5]]);
}
