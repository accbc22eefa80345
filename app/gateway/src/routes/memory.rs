//! `/memory`: what is remembered about the user, to read, correct, take away and bring along.

use axum::Json;
use axum::extract::State;
use harness::memory::{
    FactChange, ImportIssue, MemoryDocument, MemoryError, MemoryScope, MemoryStatus,
    category_issue, confidence_issue, content_issue, import_issues,
};
use harness::runtime::actor_context::effective_user_id;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, App};
use crate::error::ApiError;
use crate::extract::{Body, Fields, Ids};

/// The whole document; also for the export.
pub(crate) async fn get(State(state): App) -> Answer {
    Ok(Json(json!(state.memories.read(&scope()).await?.document)))
}

/// Nothing is kept in between, so that there is nothing to read anew.
pub(crate) async fn reload(state: App) -> Answer {
    get(state).await
}

/// Also what the user's agents remember.
pub(crate) async fn clear(State(state): App) -> Answer {
    answer(state.memories.forget_user(&effective_user_id()).await)
}

pub(crate) async fn add(State(state): App, Body(mut body): Body) -> Answer {
    if body.value("content").is_none() {
        body.missing("content");
    }
    let fact = change(&mut body);
    body.finish()?;
    let (content, category) = (
        fact.content.unwrap_or_default(),
        fact.category.unwrap_or_else(|| "context".to_owned()),
    );
    answer(
        state
            .memories
            .add(
                &scope(),
                &content,
                &category,
                fact.confidence.unwrap_or(0.5),
            )
            .await,
    )
}

pub(crate) async fn correct(State(state): App, ids: Ids, Body(mut body): Body) -> Answer {
    let change = change(&mut body);
    body.finish()?;
    answer(
        state
            .memories
            .correct(&scope(), ids.text("fact_id"), &change)
            .await,
    )
}

pub(crate) async fn remove(State(state): App, ids: Ids) -> Answer {
    answer(state.memories.remove(&scope(), ids.text("fact_id")).await)
}

pub(crate) async fn import(State(state): App, Body(mut body): Body) -> Answer {
    let given = Value::Object(body.map().clone());
    let document = match MemoryDocument::deserialize(&given) {
        Ok(document) => document,
        Err(error) => body
            .refuse(
                "value_error",
                "facts",
                format!("Input should be a memory: {error}"),
                &given,
            )
            .unwrap_or_default(),
    };
    for ImportIssue {
        kind,
        field,
        message,
    } in import_issues(&document)
    {
        body.refuse::<()>(kind, field, message, &Value::Null);
    }
    body.finish()?;
    answer(state.memories.replace(&scope(), document).await)
}

pub(crate) async fn config(State(state): App) -> Answer {
    Ok(Json(json!(state.info.memory())))
}

pub(crate) async fn status(State(state): App) -> Answer {
    Ok(Json(json!(MemoryStatus {
        config: state.info.memory(),
        data: state.memories.read(&scope()).await?.document
    })))
}

/// The signed-in user's.
fn scope() -> MemoryScope {
    MemoryScope::of_user(effective_user_id())
}

fn answer(document: Result<MemoryDocument, MemoryError>) -> Answer {
    match document {
        Ok(document) => Ok(Json(json!(document))),
        Err(MemoryError::NoFact(id)) => Err(ApiError::NotFound(format!(
            "Memory fact '{}' not found.",
            id.chars().take(80).collect::<String>()
        ))),
        Err(error @ MemoryError::Duplicate) => Err(ApiError::Conflict(error.to_string())),
        Err(MemoryError::Store(error)) => Err(error.into()),
        Err(error) => Err(ApiError::Conflict(error.to_string())),
    }
}

/// The fields of a fact.
fn change(body: &mut Fields) -> FactChange {
    FactChange {
        content: words(body, "content", content_issue),
        category: words(body, "category", category_issue),
        confidence: confidence(body),
    }
}

/// A text that may be kept.
fn words(
    body: &mut Fields,
    key: &str,
    issue: impl Fn(&str) -> Option<ImportIssue>,
) -> Option<String> {
    let text = body.text(key)?;
    match issue(&text) {
        Some(issue) => body.refuse(issue.kind, key, issue.message, &text.into()),
        None => Some(text),
    }
}

fn confidence(body: &mut Fields) -> Option<f64> {
    let given = body.value("confidence")?.clone();
    let number = given.as_f64();
    match confidence_issue(number) {
        Some(issue) => body.refuse(issue.kind, "confidence", issue.message, &given),
        None => number,
    }
}
