//! Each rule of language with a planted violation.

use super::*;

fn problems(text: &str) -> Vec<String> {
    let file = SourceFile {
        path: "app/a.rs".into(),
        text: text.to_owned(),
    };
    let (mut openings, mut violations) = (Openings::default(), Vec::new());
    check(&file, &mut openings, &mut violations);
    violations.extend(openings.violation());
    violations.iter().map(ToString::to_string).collect()
}

#[test]
fn household_word_in_doc_is_reported_with_its_term() {
    let (word, term) = HOUSEHOLD[0];
    assert_eq!(
        problems(&format!("//! File.\n/// It is {word} here.\nfn a() {{}}")),
        [format!("app/a.rs:2: household word `{word}`: write {term}")]
    );
    assert_eq!(
        problems(&format!("//! File.\n/// The field `{word}`.\nfn a() {{}}")),
        Vec::<String>::new()
    );
}

#[test]
fn household_word_in_name_is_reported() {
    let (word, _) = HOUSEHOLD[0];
    for text in [
        format!("fn is_{word}() {{}}"),
        format!(
            "mod m {{ struct {}Thing; }}",
            word[..1].to_uppercase() + &word[1..]
        ),
    ] {
        assert_eq!(problems(&text).len(), 1, "{text}");
    }
    assert_eq!(
        problems(&format!("fn f() {{ let x = \"{word}\"; }}")),
        Vec::<String>::new()
    );
}

#[test]
fn deprecated_function_keeps_its_former_name() {
    let (word, _) = HOUSEHOLD[0];
    let text = format!("#[deprecated(note = \"use `b`\")]\npub fn {word}() {{}}");
    assert_eq!(problems(&text), Vec::<String>::new());
    assert_eq!(problems(&format!("{text}\nfn {word}_two() {{}}")).len(), 1);
}

#[test]
fn question_word_at_doc_start_is_counted() {
    let found = problems("//! What it does.\nfn a() {}");
    assert_eq!(found.len(), 1);
    assert!(
        found[0].contains("1 of 1 begin with a question word"),
        "{found:?}"
    );
    let rare = format!("//! Which.\n{}", "/// Does it.\nfn a() {}\n".repeat(40));
    assert_eq!(problems(&rare), Vec::<String>::new());
}

#[test]
fn long_test_name_is_reported_but_not_a_long_function() {
    let name = "a".repeat(MAX_TEST_NAME + 1);
    assert_eq!(problems(&format!("fn {name}() {{}}")), Vec::<String>::new());
    for attribute in [
        "#[test]",
        "#[tokio::test]",
        "#[tokio::test(start_paused = true)]",
    ] {
        let found = problems(&format!("{attribute}\nasync fn {name}() {{}}"));
        assert_eq!(found.len(), 1, "{attribute}");
    }
    assert_eq!(
        problems(&format!("#[test]\nfn short() {{}}\nfn {name}() {{}}")),
        Vec::<String>::new()
    );
}

#[test]
fn visibility_in_a_path_is_reported() {
    assert_eq!(problems("mod m { pub(in crate::a) fn f() {} }").len(), 1);
    assert_eq!(
        problems("pub(crate) fn f() {} pub(super) fn g() {}"),
        Vec::<String>::new()
    );
}
