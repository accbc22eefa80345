//! Reads YAML and JSON text into a value, with limits before anything is built of it.

use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, Options};

use super::strict_value::StrictValue;

/// Maximum bytes of a document's text.
pub const MAX_BYTES: usize = 1024 * 1024;
/// Maximum depth of a document.
pub const MAX_DEPTH: usize = 64;
/// Maximum values and keys of a document. A flow with the maximum of nodes and edges stays below.
pub const MAX_VALUES: usize = 100_000;
/// Maximum YAML anchors.
pub const MAX_ANCHORS: usize = 1_000;
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
    check_length(text)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !text.trim_start().starts_with('{') {
        return yaml(text);
    }
    match serde_json::from_str::<StrictValue>(text) {
        Ok(StrictValue(value)) => check_size(&value).map(|()| value),
        // A YAML document may begin with a brace, too.
        Err(json) => yaml(text).map_err(|_| SyntaxError {
            message: format!("not valid JSON: {}", without_place(&json.to_string())),
            line: u64::try_from(json.line()).ok(),
        }),
    }
}

fn yaml(text: &str) -> Result<Value, SyntaxError> {
    let read = serde_saphyr::from_str_with_options::<StrictValue>(text, yaml_options());
    read.map(|StrictValue(value)| value)
        .map_err(|error| SyntaxError {
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
            max_nodes: MAX_VALUES,
            max_anchors: MAX_ANCHORS,
            flow_nesting_limit: MAX_DEPTH,
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_ALIASED_NODES,
        },
    }
}

/// Refuses a text that is too long.
pub(super) fn check_length(text: &str) -> Result<(), SyntaxError> {
    if text.len() <= MAX_BYTES {
        return Ok(());
    }
    Err(SyntaxError {
        message: format!(
            "the text has {} bytes; a flow has at most {MAX_BYTES}",
            text.len()
        ),
        line: None,
    })
}

/// Refuses a value that is nested too deep or has too many parts.
pub(super) fn check_size(value: &Value) -> Result<(), SyntaxError> {
    let message = match measure(value) {
        (depth, _) if depth > MAX_DEPTH => {
            format!("the document is nested deeper than {MAX_DEPTH} levels")
        }
        (_, values) if values > MAX_VALUES => {
            format!("the document has more than {MAX_VALUES} values and keys")
        }
        _ => return Ok(()),
    };
    Err(SyntaxError {
        message,
        line: None,
    })
}

/// Returns the depth of a value, and the number of its values and keys.
fn measure(value: &Value) -> (usize, usize) {
    let add = |(depth, count): (usize, usize), value: &Value| {
        let (inner, values) = measure(value);
        (depth.max(inner), count + values)
    };
    let (depth, count) = match value {
        Value::Array(items) => items.iter().fold((0, 0), add),
        Value::Object(fields) => fields.values().fold((0, fields.len()), add),
        _ => return (0, 1),
    };
    (depth + 1, count + 1)
}

/// Returns the first line of a parser's message without the place, which is reported separately.
fn without_place(message: &str) -> &str {
    let first = message.lines().next().unwrap_or_default();
    first.find(" at line ").map_or(first, |end| &first[..end])
}
