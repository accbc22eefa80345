//! The request as clients see it again with the run: complete enough to repeat it, and without secrets.

use harness::ids::{RunId, ThreadId};
use harness::runtime::runs::StreamModes;
use serde_json::{Map, Value, json};

use super::options::is_server_key;
use crate::dialect::Dialect;
use crate::extract::Fields;

/// Words that mark a key whose value is nobody's business.
const SECRET_WORDS: &[&str] = &[
    "secret",
    "token",
    "password",
    "passwd",
    "api_key",
    "apikey",
    "authorization",
    "credential",
    "private_key",
];

/// Keys that contain such a word and are harmless.
const HARMLESS: &[&str] = &[
    "max_tokens",
    "token_usage",
    "max_input_tokens",
    "max_output_tokens",
];

/// What the server decided of the run.
pub(super) struct Shown<'a> {
    pub(super) run: &'a RunId,
    /// Unknown for a thread that is made only for the run.
    pub(super) thread: Option<&'a ThreadId>,
    pub(super) assistant: &'a str,
    pub(super) metadata: &'a Map<String, Value>,
    pub(super) temporary: bool,
}

/// The echo of `fields`.
pub(super) fn echo(
    fields: &Fields,
    shown: &Shown<'_>,
    modes: StreamModes,
    dialect: Dialect,
) -> Value {
    let sent = |key: &str| fields.value(key).cloned().unwrap_or(Value::Null);
    let config = fields
        .value("config")
        .cloned()
        .map(redacted)
        .unwrap_or(Value::Null);
    if dialect == Dialect::DeerFlow {
        let mut kwargs = json!({ "input": sent("input"), "config": config });
        if let (Some(command), Some(map)) = (fields.value("command"), kwargs.as_object_mut()) {
            map.insert("command".to_owned(), redacted(command.clone()));
        }
        return kwargs;
    }
    let during = fields.value("checkpoint_during") != Some(&Value::Bool(false));
    let durability = fields
        .value("durability")
        .and_then(Value::as_str)
        .unwrap_or(if during { "async" } else { "exit" });
    json!({
        "input": sent("input"),
        "command": redacted(sent("command")),
        "config": platform_config(config, shown, fields.value("after_seconds")),
        "context": redacted(fields.value("context").cloned().unwrap_or_else(|| json!({}))),
        "stream_mode": modes.iter().map(|mode| mode.as_str()).collect::<Vec<_>>(),
        "interrupt_before": sent("interrupt_before"),
        "interrupt_after": sent("interrupt_after"),
        "webhook": sent("webhook"),
        "feedback_keys": sent("feedback_keys"),
        "temporary": shown.temporary,
        "subgraphs": fields.value("stream_subgraphs") == Some(&Value::Bool(true)),
        "resumable": fields.value("stream_resumable") == Some(&Value::Bool(true)),
        "checkpoint_during": durability != "exit",
        "durability": durability,
    })
}

fn platform_config(config: Value, shown: &Shown<'_>, after_seconds: Option<&Value>) -> Value {
    let mut config = match config {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    let mut configurable = match config.shift_remove("configurable") {
        Some(Value::Object(map)) => map
            .into_iter()
            .filter(|(key, _)| !is_server_key(key))
            .collect(),
        _ => Map::new(),
    };
    configurable.insert(
        "__after_seconds__".to_owned(),
        after_seconds.cloned().unwrap_or_else(|| 0.into()),
    );
    configurable.insert("run_id".to_owned(), shown.run.as_str().into());
    configurable.extend(
        shown
            .thread
            .map(|thread| ("thread_id".to_owned(), thread.as_str().into())),
    );
    configurable.insert("graph_id".to_owned(), shown.assistant.into());
    configurable.insert(
        "assistant_id".to_owned(),
        super::assistant_uuid(shown.assistant).to_string().into(),
    );
    config.insert("configurable".to_owned(), Value::Object(configurable));
    config.insert("metadata".to_owned(), Value::Object(shown.metadata.clone()));
    Value::Object(config)
}

/// The fields with everything that looks like a secret replaced by `***`.
pub(super) fn redacted_fields(fields: Map<String, Value>) -> Map<String, Value> {
    let hide = |(key, value): (String, Value)| {
        let value = if is_secret(&key) && !value.is_null() {
            Value::from("***")
        } else {
            redacted(value)
        };
        (key, value)
    };
    fields.into_iter().map(hide).collect()
}

fn redacted(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(redacted_fields(fields)),
        Value::Array(items) => items.into_iter().map(redacted).collect(),
        other => other,
    }
}

fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    !HARMLESS.contains(&key.as_str()) && SECRET_WORDS.iter().any(|word| key.contains(word))
}
