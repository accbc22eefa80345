//! Echo of the request that clients see with the run: complete enough to repeat it, with secrets
//! redacted.

use harness::ids::{RunId, ThreadId};
use harness::runtime::runs::{RequestEcho, StreamModes};
use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::bodies::{DurabilityName, RunCreate};
use super::options::is_server_key;
use crate::dialect::Dialect;

/// Words that mark a key whose value is secret.
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

/// Keys that contain such a word but are not secret.
const NON_SECRET_KEYS: &[&str] = &[
    "max_tokens",
    "token_usage",
    "max_input_tokens",
    "max_output_tokens",
];

/// The server's decisions about the run.
pub(super) struct EchoContext<'a> {
    pub(super) run: &'a RunId,
    /// Absent for a temporary thread.
    pub(super) thread: Option<&'a ThreadId>,
    pub(super) assistant: &'a str,
    /// Id of the assistant.
    pub(super) assistant_id: Uuid,
    pub(super) metadata: &'a Map<String, Value>,
    pub(super) temporary: bool,
}

/// Echo in DeerFlow's dialect.
#[derive(Serialize)]
struct DeerFlowEcho<'a> {
    input: &'a Option<Map<String, Value>>,
    config: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Value>,
}

/// Echo in the platform's dialect.
#[derive(Serialize)]
struct PlatformEcho<'a> {
    input: &'a Option<Map<String, Value>>,
    command: Value,
    config: Value,
    context: Value,
    stream_mode: Vec<&'static str>,
    interrupt_before: &'a Value,
    interrupt_after: &'a Value,
    webhook: &'a Option<String>,
    feedback_keys: &'a Option<Vec<String>>,
    temporary: bool,
    subgraphs: bool,
    resumable: bool,
    checkpoint_during: bool,
    durability: &'static str,
}

/// Returns the echo of `body`. The input may be large and is serialized without a copy.
pub(super) fn echo(
    body: &RunCreate,
    context: &EchoContext<'_>,
    modes: StreamModes,
    dialect: Dialect,
) -> serde_json::Result<RequestEcho> {
    let object =
        |sent: &Option<Map<String, Value>>| sent.clone().map_or(Value::Null, Value::Object);
    let config = redacted(object(&body.config));
    if dialect == Dialect::DeerFlow {
        let command = body.command.clone();
        return RequestEcho::new(&DeerFlowEcho {
            input: &body.input,
            config,
            command: command.map(|command| redacted(Value::Object(command))),
        });
    }
    let during = body.checkpoint_during != Some(false);
    let durability = body.durability.map_or(
        if during { "async" } else { "exit" },
        DurabilityName::as_str,
    );
    RequestEcho::new(&PlatformEcho {
        input: &body.input,
        command: redacted(object(&body.command)),
        config: platform_config(config, context, &body.after_seconds),
        context: redacted(Value::Object(body.context.clone().unwrap_or_default())),
        stream_mode: modes.iter().map(|mode| mode.as_str()).collect(),
        interrupt_before: &body.interrupt_before,
        interrupt_after: &body.interrupt_after,
        webhook: &body.webhook,
        feedback_keys: &body.feedback_keys,
        temporary: context.temporary,
        subgraphs: body.stream_subgraphs == Some(true),
        resumable: body.stream_resumable == Some(true),
        checkpoint_during: durability != "exit",
        durability,
    })
}

fn platform_config(config: Value, context: &EchoContext<'_>, after_seconds: &Value) -> Value {
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
        if after_seconds.is_null() {
            0.into()
        } else {
            after_seconds.clone()
        },
    );
    configurable.insert("run_id".to_owned(), context.run.as_str().into());
    configurable.extend(
        context
            .thread
            .map(|thread| ("thread_id".to_owned(), thread.as_str().into())),
    );
    configurable.insert("graph_id".to_owned(), context.assistant.into());
    configurable.insert(
        "assistant_id".to_owned(),
        context.assistant_id.to_string().into(),
    );
    config.insert("configurable".to_owned(), Value::Object(configurable));
    config.insert(
        "metadata".to_owned(),
        Value::Object(context.metadata.clone()),
    );
    Value::Object(config)
}

/// Replaces all values that may be secret by `***`.
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
    !NON_SECRET_KEYS.contains(&key.as_str()) && SECRET_WORDS.iter().any(|word| key.contains(word))
}
