//! Tests of locations, kinds of values and malicious documents.

use serde_json::json;

use super::*;

#[test]
fn keys_and_values_have_locations() {
    let root =
        Node::parse("# comment\ntitle:\n  max_words: 99\nmodels:\n  - name: a\n    use: b\n")
            .unwrap();
    let title = root.entry("title").unwrap();
    assert_eq!(title.place, FileLocation { line: 2, column: 1 });
    let (words, whole) = root.follow(&["title", "max_words"]);
    assert!(whole);
    assert_eq!(
        words.place,
        FileLocation {
            line: 3,
            column: 14
        }
    );
    let (name, whole) = root.follow(&["models", "0", "use"]);
    assert!(whole);
    assert_eq!(
        name.place,
        FileLocation {
            line: 6,
            column: 10
        }
    );
    assert!(!root.follow(&["models", "1"]).1);
}

#[test]
fn values_have_the_right_kind() {
    let root = Node::parse("a: yes\nb: 12\nc: 1.5\nd: ~\ne: \"12\"\nf: [x, {y: z}]\ng: -3\n1: x\n")
        .unwrap();
    assert_eq!(
        root.to_json(),
        json!({"a": true, "b": 12, "c": 1.5, "d": null, "e": "12", "f": ["x", {"y": "z"}], "g": -3, "1": "x"})
    );
}

#[test]
fn anchors_and_merge_keys_are_followed() {
    let root =
        Node::parse("base: &base {a: 1, b: 2}\nuse: {<<: *base, b: 3}\nlist: *base\n").unwrap();
    assert_eq!(root.to_json()["use"], json!({"a": 1, "b": 3}));
    assert_eq!(root.to_json()["list"], json!({"a": 1, "b": 2}));
}

#[test]
fn last_duplicate_key_applies_and_first_is_recorded() {
    let root = Node::parse("a: 1\nb: 2\na: 3\n").unwrap();
    let entry = root.entry("a").unwrap();
    assert_eq!(entry.value.to_json(), json!(3));
    assert_eq!(entry.place.line, 3);
    assert_eq!(entry.replaces.unwrap().line, 1);
}

#[test]
fn empty_document_is_an_empty_map() {
    for text in ["", "# only a comment\n", "---\n", "null\n", "\u{feff}"] {
        let root = Node::parse(text).unwrap();
        assert!(root.entries().is_empty(), "{text:?}");
    }
}

#[test]
fn document_without_root_map_is_rejected() {
    for text in ["- a\n", "text\n", "5\n"] {
        assert!(
            Node::parse(text)
                .unwrap_err()
                .message
                .contains("must be a map of sections"),
            "{text:?}"
        );
    }
}

#[test]
fn invalid_yaml_is_rejected_with_line() {
    let error = Node::parse("title:\n  max_words: [1, 2\nmodels: x\n").unwrap_err();
    assert!(error.place.line >= 2, "{error:?}");
    assert!(!error.message.contains('\n'));
}

#[test]
fn thousand_levels_are_rejected() {
    let flow = format!("a: {}{}", "[".repeat(1000), "]".repeat(1000));
    assert!(Node::parse(&flow).is_err());
    let block: String = (0..1000)
        .map(|depth| format!("{}a:\n", " ".repeat(depth)))
        .collect();
    assert!(Node::parse(&block).is_err());
    let dashes = format!("a:\n  {}x", "- ".repeat(1000));
    assert!(Node::parse(&dashes).is_err());
}

#[test]
fn alias_bomb_is_rejected() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let below = vec![format!("*a{}", level - 1); 9].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    assert!(Node::parse(&text).is_err());
}

#[test]
fn self_referencing_alias_is_rejected() {
    assert!(Node::parse("a: &a [*a]\n").is_err());
}
