//! Tests of the checks of types on small crates.

use super::*;

fn problems(list: &str, files: &[(&str, &str)]) -> Vec<String> {
    let texts = files
        .iter()
        .map(|(path, text)| (format!("app/server/src/{path}").into(), (*text).to_owned()));
    let crate_ = Crate::read("a", "app/server/src".into(), texts).unwrap();
    let mut exceptions = Exceptions::parse(LIST, list).unwrap();
    let mut violations = check_all(&[crate_], &mut exceptions);
    violations.extend(exceptions.unneeded());
    violations.iter().map(ToString::to_string).collect()
}

#[test]
fn third_type_of_one_name_is_reported() {
    let twice = ("a.rs", "struct Entry; mod b { enum Entry {} }");
    let test = ("a_tests.rs", "struct Entry;");
    assert_eq!(problems("", &[twice, test]), Vec::<String>::new());
    let files = [twice, ("c.rs", "type Entry = u8;")];
    let found = problems("", &files);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].contains("3 types named `Entry` in a, more than 2"),
        "{found:?}"
    );
    assert!(found[0].contains("app/server/src/c.rs:1"), "{found:?}");
    assert_eq!(problems("a::Entry:3 why", &files), Vec::<String>::new());
    assert_eq!(problems("a::Entry:4 why", &files).len(), 2);
}

#[test]
fn large_state_struct_is_reported() {
    let state = |name: &str, fields: usize| {
        let fields: Vec<String> = (0..fields).map(|n| format!("f{n}: u8")).collect();
        format!("struct {name} {{ {} }}", fields.join(", "))
    };
    let check = |text: String| problems("", &[("a.rs", &text)]);
    assert_eq!(
        check(state("RunState", MAX_STATE_FIELDS)),
        Vec::<String>::new()
    );
    assert_eq!(
        check(state("Row", MAX_STATE_FIELDS + 1)),
        Vec::<String>::new()
    );
    let found = check(state("RunState", MAX_STATE_FIELDS + 1));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].contains("state struct `RunState` has 13 fields, more than 12"),
        "{found:?}"
    );
}

#[test]
fn trait_implementation_in_wiring_is_reported() {
    let text = "impl A {}\nimpl B for A {}";
    assert_eq!(problems("", &[("serve.rs", text)]), Vec::<String>::new());
    let found = problems("", &[("wiring/a.rs", text)]);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("app/server/src/wiring/a.rs:2: 1 trait implementations in the wiring"),
        "{found:?}"
    );
}
