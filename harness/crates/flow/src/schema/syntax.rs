//! Reads YAML and JSON text into a value, with limits before anything is built of it.

use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, Options};

/// Maximum bytes of a document's text.
pub const MAX_BYTES: usize = 1024 * 1024;
/// Maximum depth of a document.
pub const MAX_DEPTH: usize = 64;
/// Maximum YAML nodes that aliases repeat.
pub const MAX_ALIASED_NODES: usize = 10_000;

/// Reason why a text is no document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) message: String,
    pub(super) line: Option<u64>,
}

/// Reads a text: JSON if it is JSON, else YAML.
pub(super) fn read(text: &str) -> Result<Value, SyntaxError> {
    if text.len() > MAX_BYTES {
        return Err(SyntaxError {
            message: format!(
                "the text has {} bytes; a flow has at most {MAX_BYTES}",
                text.len()
            ),
            line: None,
        });
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !text.trim_start().starts_with('{') {
        return yaml(text);
    }
    match serde_json::from_str(text) {
        Ok(value) if depth(&value) > MAX_DEPTH => Err(SyntaxError {
            message: format!("the document is nested deeper than {MAX_DEPTH} levels"),
            line: None,
        }),
        Ok(value) => Ok(value),
        // A YAML document may begin with a brace, too.
        Err(json) => yaml(text).map_err(|_| SyntaxError {
            message: format!("not valid JSON: {}", without_place(&json.to_string())),
            line: u64::try_from(json.line()).ok(),
        }),
    }
}

fn yaml(text: &str) -> Result<Value, SyntaxError> {
    serde_saphyr::from_str_with_options(text, yaml_options()).map_err(|error| SyntaxError {
        message: format!(
            "not valid YAML: {}",
            without_place(&error.without_snippet().to_string())
        ),
        line: error
            .location()
            .map(|location| location.line())
            .filter(|line| *line > 0),
    })
}

/// Options of the YAML parser. Plain `yes`, `no`, `on` and `off` are text, as in YAML 1.2.
pub(crate) fn yaml_options() -> Options {
    serde_saphyr::options! {
        with_snippet: false,
        duplicate_keys: DuplicateKeyPolicy::Error,
        strict_booleans: true,
        underscored_numbers_as_strings: true,
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_ALIASED_NODES,
        },
    }
}

fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    1 + inner.unwrap_or_default()
}

/// Returns the first line of a parser's message without the place, which is reported separately.
fn without_place(message: &str) -> &str {
    let first = message.lines().next().unwrap_or_default();
    first.find(" at line ").map_or(first, |end| &first[..end])
}
