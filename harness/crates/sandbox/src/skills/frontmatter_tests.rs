//! Frontmatter: valid, unusual and invalid.

use super::*;

fn skill(head: &str) -> String {
    format!("---\n{head}\n---\n\n# Body\n---\n")
}

fn problem(result: Result<Frontmatter, FrontmatterError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn valid_frontmatter_is_parsed() {
    let text = skill(
        "name: web-reader\ndescription: >\n  Reads\n  pages.\nlicense: MIT\nallowed-tools: [web_fetch, ' read_file ']\nmetadata: {a: 1}",
    );
    let expected = Frontmatter {
        name: "web-reader".to_owned(),
        description: "Reads pages.".to_owned(),
        license: Some("MIT".to_owned()),
        allowed_tools: Some(vec!["web_fetch".to_owned(), "read_file".to_owned()]),
    };
    assert_eq!(parse(&text), Ok(expected.clone()));
    assert_eq!(check(&text), Ok(expected));
}

#[test]
fn crlf_bom_and_trailing_spaces_are_accepted() {
    let text = "\u{feff}--- \r\nname: a\r\ndescription: b\r\n---\t\r\nbody";
    assert_eq!(check(text).map(|head| head.name), Ok("a".to_owned()));
}

#[test]
fn missing_dash_line_is_rejected() {
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
fn invalid_yaml_is_rejected_with_advice() {
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
fn expanding_yaml_and_long_heads_fail_quickly() {
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
fn invalid_keys_are_named() {
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
fn custom_skills_are_checked_against_format() {
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
        "skills of the installation are parsed leniently"
    );
}
