//! Stream modes in requests.

use harness::runtime::runs::{StreamMode, StreamModes};
use serde_json::{Value, json};

use crate::dialect::Dialect;
use crate::error::Issue;
use crate::extract::Issues;

/// Reads the requested modes: a string or a list of strings; the default is `values`.
pub(super) fn read_modes(value: &Value, issues: &mut Issues, dialect: Dialect) -> StreamModes {
    let default = StreamModes::from_iter([StreamMode::Values]);
    let words: Vec<&Value> = match value {
        Value::Null => return default,
        Value::Array(words) => words.iter().collect(),
        word => vec![word],
    };
    let offered = |word: &&Value| {
        word.as_str()
            .and_then(StreamMode::parse)
            .filter(|mode| offers(dialect, *mode))
    };
    let refused: Vec<String> = words
        .iter()
        .filter(|word| offered(word).is_none())
        .map(|word| {
            word.as_str()
                .map_or_else(|| word.to_string(), str::to_owned)
                .chars()
                .take(40)
                .collect()
        })
        .collect();
    if !refused.is_empty() {
        let refused = refused.join(", ");
        let loc = vec!["body".into(), "stream_mode".into()];
        let issue = Issue::new(
            "unsupported_stream_mode",
            loc,
            format!("Unsupported stream mode(s): {refused}"),
            value,
        );
        issues.push(issue.ctx(json!({ "modes": refused })));
        return default;
    }
    let modes: StreamModes = words.iter().filter_map(offered).collect();
    if modes == StreamModes::default() {
        return default;
    }
    // If both forms of messages are requested, only the tuple form is sent, as the recorded server
    // does.
    let both = modes.has(StreamMode::Messages) && modes.has(StreamMode::MessagesTuple);
    modes
        .iter()
        .filter(|mode| !(both && *mode == StreamMode::Messages))
        .collect()
}

fn offers(dialect: Dialect, mode: StreamMode) -> bool {
    match mode {
        StreamMode::Events | StreamMode::Messages => dialect.is_platform(),
        _ => true,
    }
}

/// Returns the event names that a join's `stream_mode` selects; empty means all.
pub fn mode_filter(words: &[String]) -> Vec<String> {
    words
        .iter()
        .map(|word| {
            if word == "messages-tuple" {
                "messages".to_owned()
            } else {
                word.clone()
            }
        })
        .collect()
}
