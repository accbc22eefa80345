//! Tests of the circles and of their list on a small crate.

use super::*;

fn circles_of(texts: &[(&str, &str)]) -> Vec<Vec<String>> {
    let texts = texts
        .iter()
        .map(|(path, text)| (format!("a/{path}").into(), (*text).to_owned()));
    let crate_ = Crate::read("a", "a".into(), texts).unwrap();
    let found = all(&[crate_]);
    found.into_iter().map(Vec::from_iter).collect()
}

fn problems(found: &[&[&str]], list: &str) -> Vec<String> {
    let circle = |names: &&[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let found: Vec<Circle> = found.iter().map(circle).collect();
    let violations = compare(&found, &parse(list).unwrap());
    violations.iter().map(ToString::to_string).collect()
}

#[test]
fn files_in_a_circle_are_found() {
    let files = [
        ("b.rs", "use crate::c::C; pub struct B;"),
        ("c.rs", "use crate::d::D; pub struct C;"),
        ("d.rs", "use crate::b::B; pub struct D;"),
        ("e.rs", "use crate::b::B;"),
    ];
    assert_eq!(circles_of(&files), [["a/b.rs", "a/c.rs", "a/d.rs"]]);
}

#[test]
fn folders_in_a_circle_are_found() {
    let files = [
        ("b/mod.rs", "mod x; mod y;"),
        ("b/x.rs", "use crate::c::z::Z;"),
        ("b/y.rs", "pub struct Y;"),
        ("c/mod.rs", "mod z;"),
        ("c/z.rs", "use crate::b::y::Y; pub struct Z;"),
    ];
    assert_eq!(circles_of(&files), [["a/b/", "a/c/"]]);
}

#[test]
fn circle_off_the_list_is_reported() {
    let found = problems(&[&["a/b.rs", "a/c.rs"]], "");
    assert_eq!(
        found,
        [
            "a/b.rs: import each other in a circle: move what they share to a file below them \
          (a/b.rs a/c.rs)"
        ]
    );
}

#[test]
fn list_may_only_shrink() {
    let list = "# comment\na/b.rs a/c.rs a/d.rs | why\n";
    let whole = ["a/b.rs", "a/c.rs", "a/d.rs"];
    assert_eq!(problems(&[&whole], list), Vec::<String>::new());
    let grown = ["a/b.rs", "a/c.rs", "a/d.rs", "a/e.rs"];
    assert!(problems(&[&grown], list)[0].contains("import each other"));
    assert_eq!(
        problems(&[&whole[..2]], list),
        [
            "xtask/src/boundary/circles.txt: a/d.rs is in no circle any more: remove it from the list"
        ]
    );
    assert_eq!(problems(&[], list).len(), 3);
}

#[test]
fn circle_without_reason_is_rejected() {
    let error = parse("a/b.rs a/c.rs").unwrap_err().to_string();
    assert!(error.contains(":1: expected"), "{error}");
}
