//! `POST /threads/{t}/commands`: one command of the streaming protocol.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use harness::ids::ThreadId;
use serde_json::{Map, Value};

use super::answer::{CommandError, answer};
use super::{input_respond, run_start};
use crate::extract::{AnyJson, Ids};
use crate::routes::{App, ResponseResult};
use crate::state::GatewayState;

/// A command: its id, method and parameters.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Command {
    pub(super) id: Value,
    pub(super) method: String,
    params: Value,
}

/// A text that is no command. The id is null unless one was sent.
#[derive(Debug)]
pub(super) struct Malformed {
    pub(super) id: Value,
    pub(super) error: CommandError,
}

impl Command {
    /// Reads a command.
    pub(super) fn read(body: Value) -> Result<Self, Malformed> {
        let Value::Object(mut fields) = body else {
            return Err(Malformed {
                id: Value::Null,
                error: CommandError::invalid("a command must be an object"),
            });
        };
        let id = fields.shift_remove("id").unwrap_or_default();
        if !(id.is_i64() || id.is_u64()) {
            let error = CommandError::invalid("id must be an integer");
            return Err(Malformed { id, error });
        }
        let Some(Value::String(method)) = fields.shift_remove("method") else {
            let error = CommandError::invalid("method must be a text");
            return Err(Malformed { id, error });
        };
        let params = fields.shift_remove("params").unwrap_or_default();
        Ok(Self { id, method, params })
    }

    /// Returns the parameters; none is the same as an empty object.
    pub(super) fn params(&self) -> Result<Map<String, Value>, CommandError> {
        match &self.params {
            Value::Null => Ok(Map::new()),
            Value::Object(params) => Ok(params.clone()),
            _ => Err(CommandError::invalid("params must be an object")),
        }
    }
}

pub(crate) async fn commands(
    State(state): App,
    ids: Ids,
    AnyJson(body): AnyJson,
) -> ResponseResult {
    let thread = ids.thread()?;
    let command = match Command::read(body) {
        Ok(command) => command,
        Err(Malformed { id, error }) => {
            let body = Json(answer(&id, &Err(error), 0));
            return Ok((StatusCode::BAD_REQUEST, body).into_response());
        }
    };
    let result = execute(&state, &thread, &command).await;
    Ok(Json(answer(&command.id, &result, 0)).into_response())
}

/// Executes a command that needs no socket.
pub(super) async fn execute(
    state: &Arc<GatewayState>,
    thread: &ThreadId,
    command: &Command,
) -> Result<Value, CommandError> {
    match command.method.as_str() {
        "run.start" => run_start::start(state, thread, command.params()?).await,
        "input.respond" => input_respond::respond(state, thread, command.params()?).await,
        "subscription.subscribe"
        | "subscription.unsubscribe"
        | "subscription.reconnect"
        | "agent.getTree" => Err(CommandError::invalid(format!(
            "{} needs a WebSocket",
            command.method
        ))),
        _ => Err(unknown(&command.method)),
    }
}

/// Returns the error of a method that does not exist.
pub(super) fn unknown(method: &str) -> CommandError {
    let method: String = method.chars().take(80).collect();
    CommandError::new("unknown_command", format!("unknown method {method:?}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn malformed_command_is_refused_with_its_id() {
        for (body, id) in [
            (json!([]), json!(null)),
            (json!("text"), json!(null)),
            (json!({}), json!(null)),
            (json!({ "id": 1 }), json!(1)),
            (json!({ "id": 1, "method": 5 }), json!(1)),
            (json!({ "id": 1.5, "method": "run.start" }), json!(1.5)),
            (json!({ "id": true, "method": "run.start" }), json!(true)),
            (json!({ "id": "1", "method": "run.start" }), json!("1")),
            (json!({ "method": "run.start" }), json!(null)),
        ] {
            let refused = Command::read(body.clone()).expect_err(&body.to_string());
            assert_eq!((refused.id, refused.error.code), (id, "invalid_argument"));
        }
    }

    #[test]
    fn parameters_must_be_an_object() {
        let params = |params: Value| {
            let command = json!({ "id": 1, "method": "m", "params": params });
            Command::read(command).expect("a command").params()
        };
        assert_eq!(params(json!(null)), Ok(Map::new()));
        for other in [json!([]), json!(5), json!("x"), json!(true)] {
            assert_eq!(params(other).expect_err("refused").code, "invalid_argument");
        }
    }
}
