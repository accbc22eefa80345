//! Parses conditions of flows and evaluates the valid ones on a scope in which every root has a
//! value.
#![no_main]

use std::borrow::Cow;

use deerflow_flow::condition::{Condition, MAX_CHARS, Root, Scope};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

struct Constant(Value);

impl Scope for Constant {
    fn value(&self, _root: &Root) -> Option<Cow<'_, Value>> {
        Some(Cow::Borrowed(&self.0))
    }
}

fuzz_target!(|text: &str| match Condition::parse(text) {
    Ok(condition) => {
        assert!(text.chars().count() <= MAX_CHARS);
        let scope = Constant(json!({"a": [1, "b", null], "n": 2.5, "t": "text"}));
        assert_eq!(condition.is_true(&scope), condition.is_true(&scope));
    }
    Err(error) => assert!(text.is_char_boundary(error.offset), "{error}"),
});
