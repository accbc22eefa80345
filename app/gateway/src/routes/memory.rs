//! `/memory`: read, correct, remove, export and import the user's memory.

use axum::Json;
use axum::extract::State;
use harness::runtime::actor_context::effective_user_id;
use harness::user_memory::{
    FactChange, ImportIssue, MemoryDocument, MemoryError, MemoryScope, MemoryStatus,
    category_issue, confidence_issue, content_issue, import_issues,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{App, JsonResult};
use crate::error::{ApiError, truncated};
use crate::extract::{Body, Ids, Issues};
use crate::requests::bodies::{FactAdd, FactPatch, MemoryImport};
use crate::state::AgentServices;

/// Returns the whole document; also for the export.
pub(crate) async fn get(State(agents): State<AgentServices>) -> JsonResult {
    Ok(Json(json!(
        agents.user_memories.read(&scope()).await?.document
    )))
}

/// Returns the whole document: no copy is cached that could be reloaded.
pub(crate) async fn reload(state: State<AgentServices>) -> JsonResult {
    get(state).await
}

/// Clears the user's memory, including that of the user's agents.
pub(crate) async fn clear(State(agents): State<AgentServices>) -> JsonResult {
    document_json(agents.user_memories.forget_user(&effective_user_id()).await)
}

pub(crate) async fn add(State(agents): State<AgentServices>, body: Body<FactAdd>) -> JsonResult {
    let (body, mut issues) = body.parts();
    let fact = change(body.content, body.category, &body.confidence, &mut issues);
    issues.finish()?;
    let (content, category) = (
        fact.content.unwrap_or_default(),
        fact.category.unwrap_or_else(|| "context".to_owned()),
    );
    document_json(
        agents
            .user_memories
            .add(
                &scope(),
                &content,
                &category,
                fact.confidence.unwrap_or(0.5),
            )
            .await,
    )
}

pub(crate) async fn correct(
    State(agents): State<AgentServices>,
    ids: Ids,
    body: Body<FactPatch>,
) -> JsonResult {
    let (body, mut issues) = body.parts();
    let change = change(body.content, body.category, &body.confidence, &mut issues);
    issues.finish()?;
    document_json(
        agents
            .user_memories
            .correct(&scope(), ids.text("fact_id"), &change)
            .await,
    )
}

pub(crate) async fn remove(State(agents): State<AgentServices>, ids: Ids) -> JsonResult {
    document_json(
        agents
            .user_memories
            .remove(&scope(), ids.text("fact_id"))
            .await,
    )
}

pub(crate) async fn import(
    State(agents): State<AgentServices>,
    body: Body<MemoryImport>,
) -> JsonResult {
    let raw = Value::Object(body.map().clone());
    let (_, mut issues) = body.parts();
    let document = match MemoryDocument::deserialize(&raw) {
        Ok(document) => document,
        Err(error) => issues
            .refuse(
                "value_error",
                "facts",
                format!("Input should be a memory: {error}"),
                &raw,
            )
            .unwrap_or_default(),
    };
    for ImportIssue {
        kind,
        field,
        message,
    } in import_issues(&document)
    {
        issues.refuse::<()>(kind, field, message, &Value::Null);
    }
    issues.finish()?;
    document_json(agents.user_memories.replace(&scope(), document).await)
}

pub(crate) async fn config(State(state): App) -> JsonResult {
    Ok(Json(json!(state.info.memory())))
}

pub(crate) async fn status(State(state): App) -> JsonResult {
    Ok(Json(json!(MemoryStatus {
        config: state.info.memory(),
        data: state
            .agent_services
            .user_memories
            .read(&scope())
            .await?
            .document
    })))
}

/// Returns the scope of the signed-in user.
fn scope() -> MemoryScope {
    MemoryScope::of_user(effective_user_id())
}

fn document_json(document: Result<MemoryDocument, MemoryError>) -> JsonResult {
    match document {
        Ok(document) => Ok(Json(json!(document))),
        Err(MemoryError::NoFact(id)) => Err(ApiError::NotFound(format!(
            "Memory fact '{}' not found.",
            truncated(&id)
        ))),
        Err(error @ MemoryError::Duplicate) => Err(ApiError::Conflict(error.to_string())),
        Err(MemoryError::Store(error)) => Err(error.into()),
        Err(error) => Err(ApiError::Conflict(error.to_string())),
    }
}

/// Reads the fields of a fact.
fn change(
    content: Option<String>,
    category: Option<String>,
    raw_confidence: &Value,
    issues: &mut Issues,
) -> FactChange {
    FactChange {
        content: storable_text(content, "content", content_issue, issues),
        category: storable_text(category, "category", category_issue, issues),
        confidence: confidence(raw_confidence, issues),
    }
}

/// Reads a text that can be stored.
fn storable_text(
    text: Option<String>,
    key: &str,
    issue: impl Fn(&str) -> Option<ImportIssue>,
    issues: &mut Issues,
) -> Option<String> {
    let text = text?;
    match issue(&text) {
        Some(issue) => issues.refuse(issue.kind, key, issue.message, &text.into()),
        None => Some(text),
    }
}

fn confidence(raw: &Value, issues: &mut Issues) -> Option<f64> {
    if raw.is_null() {
        return None;
    }
    let number = raw.as_f64();
    match confidence_issue(number) {
        Some(issue) => issues.refuse(issue.kind, "confidence", issue.message, raw),
        None => number,
    }
}
