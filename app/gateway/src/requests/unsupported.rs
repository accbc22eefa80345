//! Issue of an option that DeerFlow does not support.

use serde_json::{Value, json};

use crate::error::Issue;

/// Returns the issue of a run option that is not supported.
pub(super) fn unsupported(option: &str, input: &Value) -> Issue {
    Issue::new(
        "unsupported_run_option",
        vec!["body".into(), option.into()],
        format!("Run option '{option}' is not supported by DeerFlow"),
        input,
    )
    .ctx(json!({ "option": option }))
}
