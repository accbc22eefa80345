//! Tests of the reader on small sources.

use super::*;

fn read(text: &str) -> Facts {
    Facts::read(text).unwrap()
}

fn imports(text: &str) -> Vec<String> {
    let imports = read(text).imports;
    let line = |import: &Import| format!("{} = {}", import.name, import.path.segments.join("::"));
    imports.iter().map(line).collect()
}

fn paths(text: &str) -> Vec<String> {
    let paths = read(text).paths;
    paths.iter().map(|path| path.segments.join("::")).collect()
}

fn definitions(text: &str) -> Vec<String> {
    let found = read(text).definitions;
    found.into_iter().map(|found| found.name).collect()
}

#[test]
fn every_branch_of_a_use_tree_is_an_import() {
    assert_eq!(
        imports("use crate::{a::{self, B}, c::D as E, f::*};\nuse super::g;"),
        [
            "a = crate::a",
            "B = crate::a::B",
            "E = crate::c::D",
            "* = crate::f",
            "g = super::g",
        ]
    );
    let public = read("pub(crate) use a::B; use c::D;").imports;
    assert!(public[0].is_public && !public[1].is_public);
}

#[test]
fn paths_in_bodies_types_and_macros_count() {
    let text = "fn f(a: crate::a::A) -> b::B { vec![super::c::C::<u8>::new()] }";
    assert_eq!(paths(text), ["crate::a::A", "b::B", "super::c::C"]);
}

#[test]
fn comments_documentation_and_strings_do_not_count() {
    let text = "//! [`crate::a`]\n/// crate::b::B\nconst A: &str = \"crate::c\"; // crate::d";
    assert_eq!(paths(text), Vec::<String>::new());
}

#[test]
fn test_code_does_not_count() {
    let text = "
        #[cfg(test)] mod tests { use super::a::B; }
        #[cfg(test)] mod support;
        #[cfg(any(test, feature = \"testkit\"))] pub fn f<A, B>() { c::d() }
        impl A { #[cfg(test)] fn g<A, B>() { c::d() } fn h() { e::f() } }
        struct S { #[cfg(test)] a: b::B, c: c::C }";
    let facts = read(text);
    assert_eq!(facts.imports, []);
    assert_eq!(facts.test_modules, ["tests", "support"]);
    assert_eq!(paths(text), ["e::f", "c::C"]);
}

#[test]
fn items_are_definitions_and_members_are_not() {
    let text = "pub struct A; impl A { fn b() { struct C; } type D = u8; } trait E { type F; }
        mod g { enum H {} } pub async fn i() {} const fn j() {}";
    assert_eq!(definitions(text), ["A", "E", "g", "H", "i", "j"]);
}

#[test]
fn fields_of_a_struct_are_counted() {
    let text = "struct A<T: B> where T: C { a: b::C<D, E>, pub f: fn(G) -> h::I }";
    assert_eq!(read(text).definitions[0].fields, 2);
    assert_eq!(read("struct A(u8, u8);").definitions[0].fields, 0);
}

#[test]
fn only_implementations_of_traits_count() {
    let text = "impl A {}\nimpl<T> B for A where T: for<'a> C<'a> {}\nimpl<T: for<'a> C<'a>> A {}";
    assert_eq!(read(text).trait_impls, [2]);
}
