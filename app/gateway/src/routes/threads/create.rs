//! `POST /threads`.

use axum::Json;
use axum::extract::State;
use deerflow_domain::threads::{Created, NewThread};
use harness::runtime::actor_context::required_user_id;
use serde_json::Value;

use super::client_metadata;
use crate::dialect::Dialect;
use crate::error::{ApiError, Issue};
use crate::extract::{Body, parse_thread_id};
use crate::reads::thread_facts;
use crate::routes::{Answer, App};
use crate::wire::{ThreadFacts, thread_json};

pub(crate) async fn create(State(state): App, dialect: Dialect, Body(mut body): Body) -> Answer {
    let thread_id = match body.text("thread_id") {
        Some(id) => parse_thread_id(&id, dialect, "body")?,
        None => state.ids.thread_id(),
    };
    let metadata = client_metadata(body.object("metadata").unwrap_or_default(), dialect);
    let assistant = body.text("assistant_id");
    let keep_existing = match dialect {
        Dialect::DeerFlow => true,
        Dialect::Platform => body.word("if_exists", &[("raise", false), ("do_nothing", true)]).unwrap_or_default(),
    };
    let supersteps = body.value("supersteps").filter(|steps| steps.as_array().is_none_or(|steps| !steps.is_empty())).cloned();
    if let Some(steps) = supersteps.filter(|_| dialect.is_platform()) {
        // Accepting them would give back a thread without the state that was asked for.
        let loc = vec!["body".into(), "supersteps".into()];
        body.push(Issue::new("unsupported_thread_option", loc, "supersteps are not supported", &Value::from(steps.to_string())));
    }
    body.finish()?;
    let user_id = Some(required_user_id().map_err(|error| ApiError::Internal(error.to_string()))?);
    let new = NewThread { thread_id: thread_id.clone(), user_id, assistant, metadata, at: state.clock.now() };
    let exists = || ApiError::Conflict(format!("Thread with ID {thread_id} already exists"));
    match state.threads.create(new).await? {
        Created::New(record) => Ok(Json(thread_json(&record, ThreadFacts::default(), dialect))),
        Created::Existing(record) if keep_existing => {
            let facts = if dialect.is_platform() { thread_facts(&state, &record, dialect).await? } else { ThreadFacts::default() };
            Ok(Json(thread_json(&record, facts, dialect)))
        }
        Created::Existing(_) | Created::Taken => Err(exists()),
    }
}
