//! Heads of skills: good, odd and wrong ones.

use super::*;

fn skill(head: &str) -> String {
    format!("---\n{head}\n---\n\n# Body\n---\n")
}

fn problem(result: Result<Frontmatter, FrontmatterError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_good_head_is_read() {
    let text = skill(
        "name: web-reader\ndescription: >\n  Reads\n  pages.\nlicense: MIT\nallowed-tools: [web_fetch, ' read_file ']\nmetadata: {a: 1}",
    );
    let wanted = Frontmatter {
        name: "web-reader".to_owned(),
        description: "Reads pages.".to_owned(),
        license: Some("MIT".to_owned()),
        allowed_tools: Some(vec!["web_fetch".to_owned(), "read_file".to_owned()]),
    };
    assert_eq!(parse(&text), Ok(wanted.clone()));
    assert_eq!(check(&text), Ok(wanted));
}

#[test]
fn windows_line_ends_a_byte_order_mark_and_trailing_spaces_do_no_harm() {
    let text = "\u{feff}--- \r\nname: a\r\ndescription: b\r\n---\t\r\nbody";
    assert_eq!(check(text).map(|head| head.name), Ok("a".to_owned()));
}

#[test]
fn without_both_lines_of_dashes_there_is_no_head() {
    for text in [
        "",
        "name: a",
        "---\nname: a\ndescription: b\n",
        "--- name: a\n---\n",
        "\n---\nname: a\n---\n",
        "---",
    ] {
        assert_eq!(parse(text), Err(FrontmatterError::Missing), "{text:?}");
    }
}

#[test]
fn yaml_that_is_none_is_refused_with_advice() {
    for head in [
        "name: a\ndescription: use it when: always",
        "- a\n- b",
        "just text",
        "name: a\nname: b\ndescription: c",
        "a: [",
    ] {
        assert!(
            problem(parse(&skill(head))).contains("put quotes around"),
            "{head:?}"
        );
    }
}

#[test]
fn yaml_that_grows_and_heads_that_are_too_long_end_soon() {
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let refs = vec![format!("*a{}", level - 1); 10].join(",");
        bomb.push_str(&format!("a{level}: &a{level} [{refs}]\n"));
    }
    assert!(parse(&skill(&bomb)).is_err());
    assert_eq!(
        parse(&skill(&"#".repeat(MAX_BYTES + 1))),
        Err(FrontmatterError::TooLong)
    );
    assert!(parse(&skill(&format!("a: {}", "[".repeat(20_000)))).is_err());
}

#[test]
fn wrong_keys_are_named() {
    for (head, key) in [
        ("description: b", "name"),
        ("name: a", "description"),
        ("name: ' '\ndescription: b", "name"),
        ("name: 5\ndescription: b", "name"),
        ("name: a/b\ndescription: b", "name"),
        ("name: a\ndescription: [b]", "description"),
        ("name: a\ndescription: b\nlicense: 1", "license"),
        (
            "name: a\ndescription: b\nallowed-tools: bash",
            "allowed-tools",
        ),
        (
            "name: a\ndescription: b\nallowed-tools: [bash, '']",
            "allowed-tools",
        ),
    ] {
        assert!(
            problem(parse(&skill(head))).starts_with(&format!("`{key}` ")),
            "{head:?}"
        );
    }
}

#[test]
fn what_is_brought_along_is_held_to_the_format() {
    let long = "x".repeat(MAX_DESCRIPTION_CHARS + 1);
    for (head, key) in [
        ("name: a\ndescription: b\ncolour: red", "colour"),
        ("name: A\ndescription: b", "name"),
        ("name: a_b\ndescription: b", "name"),
        ("name: -a\ndescription: b", "name"),
        ("name: a--b\ndescription: b", "name"),
        ("name: ..\ndescription: b", "name"),
        ("name: а\ndescription: the letter is cyrillic", "name"),
        (
            &*format!("name: {}\ndescription: b", "a".repeat(65)),
            "name",
        ),
        (&*format!("name: a\ndescription: {long}"), "description"),
        ("name: a\ndescription: a <b> c", "description"),
        (
            "name: a\ndescription: b\nsecrets-autonomous: maybe",
            "secrets-autonomous",
        ),
        (
            "name: a\ndescription: b\nrequired-secrets: KEY",
            "required-secrets",
        ),
        (
            "name: a\ndescription: b\nrequired-secrets: [{optional: true}]",
            "required-secrets",
        ),
    ] {
        assert!(
            problem(check(&skill(head))).starts_with(&format!("`{key}` ")),
            "{head:?}"
        );
    }
    assert!(check(&skill("name: a\ndescription: b\nrequired-secrets: [KEY, {name: B, optional: true}]\nsecrets-autonomous: true")).is_ok());
    assert!(
        parse(&skill("name: A b\ndescription: b\ncolour: red")).is_ok(),
        "the installation's own are read leniently"
    );
}
