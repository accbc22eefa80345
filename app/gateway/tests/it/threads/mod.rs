//! Threads, states and histories in both dialects.

mod branch_copies;
mod branch_rows;
mod branches;
mod rows;
mod states;

use serde_json::Value;

const GONE: &str = "9c909fe5-1423-4566-9403-37f8a945b29b";

/// Returns the names of the fields of an object.
fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect()
}
