//! Bodies of the HTTP transport: requests, and the answer to a turn. Pure.

use secrecy::SecretString;
use serde_json::{Map, Value, json};

use super::failure::{BAD_RESPONSE, REQUEST_FAILED, adapter_error};
use super::redaction::{redacted, redacted_value, without_notes, without_secrets};
use super::transport::{SessionRequest, TurnRequest};
use super::usage::{TURN_NAMES, read_usage};
use crate::adapter::{
    AgentTurnResult, ErrorCategory, FlowError, SessionId, TurnMode, TurnStatus, TurnWarning,
};
use crate::structured_output::structured_output;

/// Maximum length of an id or code from the server, in characters.
const MAX_NAME_CHARS: usize = 256;
/// Maximum length of a warning, in characters.
const MAX_WARNING_CHARS: usize = 2_000;

/// Returns the body that creates a session.
pub(super) fn session_body(request: &SessionRequest<'_>) -> Value {
    let context = request.context;
    let mut body = Map::new();
    body.insert("runId".to_owned(), json!(context.run_id));
    body.insert("flowName".to_owned(), json!(context.flow_name));
    add_shared(
        &mut body,
        request.model,
        request.temperature,
        &context.agent.adapter_config,
    );
    let metadata = metadata(&context.agent.agent_id, request.model);
    body.insert("metadata".to_owned(), metadata);
    Value::Object(body)
}

/// Returns the body of a turn.
pub(super) fn turn_body(request: &TurnRequest<'_>) -> Value {
    let turn = request.invocation;
    let system = turn.system_prompt.trim();
    let prompt = if system.is_empty() {
        turn.user_prompt.clone()
    } else {
        format!("{system}\n\n{}", turn.user_prompt)
    };
    let mut body = Map::new();
    let mut add = |key: &str, value: Value| body.insert(key.to_owned(), value);
    add("sessionId", json!(turn.session_id));
    add("invocationId", json!(turn.invocation_id));
    add("runId", json!(turn.run_id));
    add("nodeId", json!(turn.node_id));
    add("agentId", json!(turn.agent.agent_id));
    add("turnMode", json!(turn.turn_mode));
    add("prompt", json!(prompt));
    if !system.is_empty() {
        add("systemPrompt", json!(system));
    }
    add("input", Value::Object(without_notes(&turn.input)));
    add("messages", json!(&turn.messages[..]));
    if let Some(expected) = &turn.expected_output {
        add("expectedOutput", json!(expected));
    }
    add("flowName", json!(turn.flow_name));
    if let Some(max_tokens) = turn.max_tokens {
        add("maxTokens", json!(max_tokens));
    }
    if let Some(answer) = &turn.answer {
        add("answer", answer.clone());
    }
    add_shared(
        &mut body,
        request.model,
        request.temperature,
        &turn.agent.adapter_config,
    );
    let metadata = metadata(&turn.agent.agent_id, request.model);
    body.insert("metadata".to_owned(), metadata);
    Value::Object(body)
}

fn add_shared(
    body: &mut Map<String, Value>,
    model: Option<&str>,
    temperature: Option<f64>,
    config: &Map<String, Value>,
) {
    if let Some(model) = model {
        body.insert("model".to_owned(), json!(model));
    }
    if let Some(temperature) = temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    let config = without_secrets(config);
    if !config.is_empty() {
        body.insert("adapterConfig".to_owned(), Value::Object(config));
    }
}

fn metadata(agent_id: &str, model: Option<&str>) -> Value {
    match model {
        Some(model) => json!({"agentId": agent_id, "model": model}),
        None => json!({"agentId": agent_id}),
    }
}

/// Reads the id in the answer to the creation of a session, or returns `None` if it has no usable
/// one.
pub(super) fn read_session(body: &[u8]) -> Option<SessionId> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let id = answer.get("sessionId")?.as_str()?;
    // Dots alone would change the path of the session.
    let is_usable =
        !id.trim().is_empty() && !matches!(id, "." | "..") && id.chars().count() <= MAX_NAME_CHARS;
    is_usable.then(|| SessionId(id.to_owned()))
}

/// Reads the answer to a turn.
pub(super) fn read_turn(
    body: &[u8],
    mode: TurnMode,
    key: Option<&SecretString>,
) -> AgentTurnResult {
    match serde_json::from_slice(body) {
        Ok(Value::Object(answer)) => turn_result(&answer, mode, key),
        Ok(_) => bad_turn("the answer to the turn is not a JSON object"),
        Err(_) if body.trim_ascii().is_empty() => bad_turn("the answer to the turn is empty"),
        Err(_) => bad_turn("the answer to the turn is not JSON"),
    }
}

/// Returns a failed turn whose answer is not valid.
pub(super) fn bad_turn(message: &str) -> AgentTurnResult {
    AgentTurnResult::ended(TurnStatus::Failed, adapter_error(BAD_RESPONSE, message))
}

/// Reads the fields of an answer. A field of another type counts as absent.
pub(super) fn turn_result(
    answer: &Map<String, Value>,
    mode: TurnMode,
    key: Option<&SecretString>,
) -> AgentTurnResult {
    let present = |name: &str| answer.get(name).filter(|value| !value.is_null());
    let list = |name: &str| {
        let items = present(name).and_then(Value::as_array);
        items.cloned().unwrap_or_default()
    };
    let text = |name: &str| present(name).and_then(Value::as_str);
    let status: Option<TurnStatus> = match present("status") {
        None => Some(TurnStatus::Completed),
        Some(name) => serde_json::from_value(name.clone()).ok(),
    };
    let final_text = text("finalText").unwrap_or_default();
    let structured = present("structuredOutput")
        .filter(|value| value.is_object())
        .cloned();
    let extracted = || (mode != TurnMode::Normal).then(|| structured_output(final_text, mode));
    let error =
        (status != Some(TurnStatus::Completed)).then(|| turn_error(status, present("error"), key));
    AgentTurnResult {
        status: status.unwrap_or(TurnStatus::Failed),
        structured_output: structured.or_else(|| extracted().flatten()),
        reasoning_text: text("reasoningText").map(str::to_owned),
        tool_calls: list("toolCalls"),
        artifacts: list("artifacts"),
        usage: present("usage")
            .map(|usage| read_usage(usage, &TURN_NAMES))
            .unwrap_or_default(),
        warnings: list("warnings")
            .iter()
            .filter_map(|value| warning(value, key))
            .collect(),
        error,
        interrupt: present("interrupt").cloned(),
        delegation_proposal: present("delegationProposal")
            .and_then(Value::as_object)
            .cloned(),
        ..AgentTurnResult::completed(final_text)
    }
}

/// Reads the error of an answer, or returns the default one.
fn turn_error(
    status: Option<TurnStatus>,
    error: Option<&Value>,
    key: Option<&SecretString>,
) -> FlowError {
    let default = match status {
        Some(status) => format!("the server ended the turn with status {}", status.as_str()),
        None => "the server ended the turn with an unknown status".to_owned(),
    };
    let field = |name: &str| {
        let text = error?.get(name)?.as_str()?;
        Some(redacted(text, key)).filter(|text| !text.trim().is_empty())
    };
    let plain = error
        .and_then(Value::as_str)
        .map(|text| redacted(text, key));
    let code = field("code").filter(|code| code.chars().count() <= MAX_NAME_CHARS);
    let category = error.and_then(|error| {
        serde_json::from_value::<ErrorCategory>(error.get("category")?.clone()).ok()
    });
    let details = error.and_then(|error| error.get("details")?.as_object());
    let details = details.map(|details| redacted_value(json!(without_secrets(details)), key));
    let retryable = error.and_then(|error| error.get("retryable")?.as_bool());
    FlowError {
        category: category.unwrap_or(ErrorCategory::Adapter),
        details: details
            .and_then(|details| details.as_object().map(without_headers))
            .unwrap_or_default(),
        ..adapter_error(
            code.as_deref().unwrap_or(REQUEST_FAILED),
            field("message").or(plain).unwrap_or(default),
        )
    }
    .retryable(retryable.unwrap_or_default())
}

/// Returns details without the headers and bodies of requests.
fn without_headers(details: &Map<String, Value>) -> Map<String, Value> {
    let hidden = |key: &str| {
        let key = key.to_lowercase();
        key.contains("header") || key.contains("request")
    };
    let retained = details.iter().filter(|(key, _)| !hidden(key));
    retained
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Reads a warning: a text, or an object with code and message. A text is its own code.
fn warning(value: &Value, key: Option<&SecretString>) -> Option<TurnWarning> {
    let field = |name: &str| value.get(name).and_then(Value::as_str);
    let message = value.as_str().or_else(|| field("message"));
    let code = field("code").or(message)?;
    let cut = |text: &str, limit| -> String { redacted(text, key).chars().take(limit).collect() };
    Some(TurnWarning {
        code: cut(code, MAX_NAME_CHARS),
        message: cut(message.unwrap_or(code), MAX_WARNING_CHARS),
    })
}
