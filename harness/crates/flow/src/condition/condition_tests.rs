//! Tests of parsing and evaluating conditions.

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Condition, Root, Scope};

struct Values(Value);

impl Scope for Values {
    fn value(&self, root: &Root) -> Option<Cow<'_, Value>> {
        match root {
            Root::Input => self.0.get("input").map(Cow::Borrowed),
            Root::Port { node, port } => self.0["nodes"].get(node)?.get(port).map(Cow::Borrowed),
            Root::LastText => Some(Cow::Owned(json!("the text"))),
            Root::LastStructured => Some(Cow::Owned(self.0["structured"].clone())),
            Root::Round(node) => (node == "loop-1").then(|| Cow::Owned(json!(3))),
        }
    }
}

fn values() -> Values {
    Values(json!({
        "input": {"topic": "rust", "n": 2, "zero": 0, "list": [1, "b", {"k": null}], "empty": {}},
        "nodes": {"main-prompt": {"out": "a bug report"}, "a b": {"out": {"x": [10, 20]}}},
        "structured": {"n": 2, "score": 0.5, "done": true},
    }))
}

fn holds(text: &str) -> bool {
    Condition::parse(text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .is_true(&values())
}

fn offset(text: &str) -> usize {
    Condition::parse(text).unwrap_err().offset
}

#[test]
fn true_conditions_hold() {
    for text in [
        "true",
        "1",
        "'x'",
        "input.topic == 'rust'",
        "input.topic == \"rust\"",
        "input.n == 2.0",
        "input.n>=2&&input.n<3",
        "input.n > -1",
        "'abc' < 'abd'",
        "nodes.main-prompt.out != null",
        "nodes['a b'].out.x.1 == 20",
        "nodes[ \"a b\" ]['out'].x[0] == 10",
        "contains(nodes.main-prompt.out, 'bug')",
        "contains(input.list, 1.0)",
        "contains(input, 'topic')",
        "exists(input.topic)",
        "len(input.list) == 3",
        "len('äö') == 2",
        "len(input.none) == 0",
        "last.text == 'the text'",
        "last.structured.done",
        "last.structured.score >= 5e-1",
        "loop.loop-1 == 3",
        "loop.other == null",
        "(input.n == 2) == true",
        "1 == 1.0 && !(1 == '1')",
    ] {
        assert!(holds(text), "{text}");
    }
}

#[test]
fn false_conditions_do_not_hold() {
    for text in [
        "false",
        "null",
        "0",
        "-0.0",
        "''",
        "input.zero",
        "input.empty",
        "input.none.deeper",
        "exists(input.list.2.k)",
        "exists(input.list.7)",
        "input.list.x == 1",
        "input.topic > 1",
        "input.none < 1",
        "input.none >= null",
        "true > false",
        "input.topic == 2",
        "contains(input.n, 2)",
        "contains(nodes.main-prompt.out, 5)",
    ] {
        assert!(!holds(text), "{text}");
    }
}

#[test]
fn operators_bind_from_loose_to_tight() {
    assert!(holds("true || false && false"));
    assert!(!holds("(true || false) && false"));
    assert!(holds("!input.n == 3"), "negation covers the comparison");
    assert!(!holds("!input.n == 2"));
    assert!(holds("!!true"));
    assert!(holds("!false && true"));
}

#[test]
fn errors_name_the_place_and_what_is_right() {
    for (text, at, expected) in [
        ("", 0, "a value"),
        ("   ", 3, "a value"),
        ("input.n = 2", 8, "`&&`, `||`"),
        ("1 == 1 == 1", 7, "do not chain"),
        ("contains('a')", 12, "`,` and another argument"),
        ("len(1, 2)", 5, "`)` after the last argument"),
        ("exists()", 7, "a value"),
        ("(true", 5, "`)`"),
        ("'abc", 0, "a quote at its end"),
        ("true true", 5, "`&&`"),
        ("a == !b", 0, "a value"),
        ("1 == !true", 5, "a value"),
        ("nodes", 5, "id of a node"),
        ("nodes.a", 7, "an output port"),
        ("last.other", 4, "`.text` or `.structured`"),
        ("last.text.more", 9, "`&&`"),
        ("loop", 4, "loop node"),
        ("input.", 6, "a key or an index"),
        ("input[x]", 6, "a quoted name or an index"),
        ("3abc == 1", 0, "a number"),
        ("1. == 1", 0, "a number"),
        ("1e999 > 1", 0, "a number"),
        ("- 1", 0, "a number"),
        ("1 + 1", 2, "`&&`"),
        ("print(1)", 0, "a value"),
        ("ä == 'ö' ö", 0, "a value"),
    ] {
        let error = Condition::parse(text).unwrap_err();
        assert_eq!(error.offset, at, "{text}: {error}");
        assert!(error.expected.contains(expected), "{text}: {error}");
    }
}

#[test]
fn nesting_is_limited_to_32_levels() {
    let nested = |depth| format!("{}true{}", "(".repeat(depth), ")".repeat(depth));
    assert!(holds(&nested(32)));
    assert_eq!(offset(&nested(33)), 33);
    assert_eq!(offset(&format!("{}true", "!".repeat(33))), 33);
    assert!(Condition::parse(&vec!["true"; 200].join(" && ")).is_ok());
}

#[test]
fn length_is_limited_to_2000_characters() {
    let text = |chars: usize| format!("'{}'", "ä".repeat(chars - 2));
    assert!(Condition::parse(&text(2_000)).is_ok());
    assert_eq!(offset(&text(2_001)), 2 * 2_000 - 1);
}

proptest! {
    #[test]
    fn any_text_parses_or_fails_without_panic(text in "\\PC{0,80}") {
        if let Ok(condition) = Condition::parse(&text) {
            let _ = condition.is_true(&values());
        }
    }

    #[test]
    fn any_tokens_parse_or_fail_without_panic(
        tokens in prop::collection::vec(
            prop::sample::select(vec![
                "input", ".", "nodes", "[", "]", "'a'", "(", ")", "!", "&&", "||", "==", "<", "-",
                "1", "0.5", "len", "contains", ",", " ", "last.text", "loop.x", "é", "\"",
            ]),
            0..20,
        )
    ) {
        if let Ok(condition) = Condition::parse(&tokens.concat()) {
            let _ = condition.is_true(&values());
        }
    }

    #[test]
    fn negation_inverts_a_comparison(a in -5i64..5, b in -5i64..5, op in 0usize..6) {
        let op = ["==", "!=", "<", "<=", ">", ">="][op];
        prop_assert_ne!(holds(&format!("{a} {op} {b}")), holds(&format!("!{a} {op} {b}")));
    }
}
