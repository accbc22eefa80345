//! `input.respond`: answers open questions of a thread with one run.

use std::sync::Arc;

use deerflow_domain::threads::ThreadRecord;
use harness::ids::ThreadId;
use harness::runtime::runs::store::RunListQuery;
use serde_json::{Map, Value};

use super::answer::CommandError;
use super::own_thread;
use super::run_start::{create, questions, run_options};
use crate::error::ApiError;
use crate::state::GatewayState;

/// Maximum number of answers of a command.
const MAX_ANSWERS: usize = 1_000;

/// Executes `input.respond`. All ids are checked before the run is created.
pub(super) async fn respond(
    state: &Arc<GatewayState>,
    thread: &ThreadId,
    mut params: Map<String, Value>,
) -> Result<Value, CommandError> {
    let answers = read_answers(&mut params)?;
    let mut body = run_options(&mut params)?;
    let existing = own_thread(state, thread).await?;
    let open = questions(state, existing.as_ref()).await?;
    let assistant = match &existing {
        Some(existing) => assistant_of(state, existing).await?,
        None => None,
    };
    let assistant = assistant.ok_or_else(CommandError::no_such_run)?;
    if let Some((unknown, _)) = answers.iter().find(|(id, _)| !open.contains(id)) {
        return Err(CommandError::no_such_interrupt(unknown));
    }
    let mut command = Map::from_iter([("resume".to_owned(), Value::Object(answers))]);
    for field in ["update", "goto"] {
        let value = params.shift_remove(field).filter(|value| !value.is_null());
        command.extend(value.map(|value| (field.to_owned(), value)));
    }
    body.insert("assistant_id".to_owned(), assistant.into());
    body.insert("command".to_owned(), command.into());
    // Of two answers to one question at the same time, the later one is refused.
    body.insert("multitask_strategy".to_owned(), "reject".into());
    create(state, thread, body).await?;
    Ok(Map::new().into())
}

/// Reads the answers by the ids of their questions.
fn read_answers(params: &mut Map<String, Value>) -> Result<Map<String, Value>, CommandError> {
    let answers = match params.shift_remove("responses") {
        None | Some(Value::Null) => vec![Value::Object(std::mem::take(params))],
        Some(Value::Array(answers)) if !answers.is_empty() => answers,
        Some(_) => {
            let refused = "responses must be a non-empty list of answers";
            return Err(CommandError::invalid(refused));
        }
    };
    if answers.len() > MAX_ANSWERS {
        let refused = format!("responses has more than {MAX_ANSWERS} answers");
        return Err(CommandError::invalid(refused));
    }
    let (is_single, mut read) = (answers.len() == 1, Map::new());
    for answer in answers {
        let Value::Object(mut answer) = answer else {
            return Err(CommandError::invalid("an answer must be an object"));
        };
        let id = match answer.shift_remove("interrupt_id") {
            Some(Value::String(id)) if !id.is_empty() => id,
            _ => return Err(CommandError::invalid("interrupt_id must be a text")),
        };
        check_namespace(answer.get("namespace"))?;
        let response = answer.shift_remove("response").unwrap_or_default();
        if read.insert(id, response).is_some() {
            return Err(CommandError::invalid("a question has two answers"));
        }
        if is_single {
            // The other fields of a command without `responses` are next to its answer.
            params.extend(answer);
        }
    }
    Ok(read)
}

fn check_namespace(namespace: Option<&Value>) -> Result<(), CommandError> {
    let is_valid = match namespace {
        None | Some(Value::Null) => true,
        Some(Value::Array(segments)) => segments.iter().all(Value::is_string),
        Some(_) => false,
    };
    let refused = || CommandError::invalid("namespace must be a list of texts");
    is_valid.then_some(()).ok_or_else(refused)
}

/// Reports whether a command names another namespace than that of the questions: all are asked by
/// the agent of the run.
pub(super) fn names_nested_agent(params: &Map<String, Value>) -> bool {
    let is_nested = |answer: &Value| {
        let namespace = answer.get("namespace").and_then(Value::as_array);
        namespace.is_some_and(|segments| !segments.is_empty())
    };
    match params.get("responses").and_then(Value::as_array) {
        Some(answers) => answers.iter().any(is_nested),
        None => params
            .get("namespace")
            .and_then(Value::as_array)
            .is_some_and(|segments| !segments.is_empty()),
    }
}

/// Returns the assistant that asked: that of the newest run, or of the thread if its runs are
/// deleted or those of its original.
async fn assistant_of(
    state: &GatewayState,
    thread: &ThreadRecord,
) -> Result<Option<String>, CommandError> {
    let query = RunListQuery {
        limit: 1,
        ..RunListQuery::default()
    };
    let runs = state.runs.list_runs(&thread.thread_id, &query).await;
    let newest = runs.map_err(ApiError::from)?.into_iter().next();
    let of_run = newest.map(|run| match run.metadata.get("assistant_id") {
        Some(Value::String(id)) => id.clone(),
        _ => run.assistant,
    });
    let of_thread = thread.assistant_id.as_ref().or(thread.assistant.as_ref());
    Ok(of_run.or_else(|| of_thread.cloned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(params: Value) -> Result<Map<String, Value>, CommandError> {
        read_answers(&mut params.as_object().cloned().expect("an object"))
    }

    #[test]
    fn answers_are_read_in_both_forms() {
        let single = read(json!({ "interrupt_id": "q", "response": "red", "namespace": [] }));
        assert_eq!(json!(single.expect("valid")), json!({ "q": "red" }));
        let batch = json!({ "responses": [{ "interrupt_id": "a", "response": null }, { "interrupt_id": "b", "response": 2 }] });
        assert_eq!(
            json!(read(batch).expect("valid")),
            json!({ "a": null, "b": 2 })
        );
    }

    #[test]
    fn other_fields_of_single_answer_remain() {
        let mut params = json!({ "interrupt_id": "q", "response": 1, "update": { "title": "T" } });
        let params = params.as_object_mut().expect("an object");
        read_answers(params).expect("valid");
        assert_eq!(params["update"], json!({ "title": "T" }));
    }

    #[test]
    fn invalid_answers_are_refused() {
        let two = json!({ "interrupt_id": "q", "response": 1 });
        for params in [
            json!({}),
            json!({ "interrupt_id": 5 }),
            json!({ "interrupt_id": "" }),
            json!({ "responses": [] }),
            json!({ "responses": 5 }),
            json!({ "responses": [5] }),
            json!({ "responses": [{}] }),
            json!({ "responses": [two, two] }),
            json!({ "interrupt_id": "x", "namespace": "a" }),
            json!({ "responses": [{ "interrupt_id": "x", "namespace": [1] }] }),
        ] {
            let refused = read(params.clone()).expect_err(&params.to_string());
            assert_eq!(refused.code, "invalid_argument");
        }
    }
}
