//! `/memory`: what is remembered about the user, to read, correct, take away and bring along.

use axum::Json;
use axum::extract::State;
use harness::memory::{Fact, FactChange, MemoryDocument, MemoryError, MemoryScope};
use harness::runtime::actor_context::effective_user_id;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, App};
use crate::error::ApiError;
use crate::extract::{Body, Fields, Ids};

/// The longest fact, and the most of them, that come from outside.
const MOST_FACT_CHARS: usize = 10_000;
const MOST_FACTS: usize = 1_000;
/// The longest of what only names something, or says when.
const MOST_LABEL_CHARS: usize = 200;
/// The longest note.
const MOST_NOTE_CHARS: usize = 20_000;

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
    let (content, category) = (fact.content.unwrap_or_default(), fact.category.unwrap_or_else(|| "context".to_owned()));
    answer(state.memories.add(&scope(), &content, &category, fact.confidence.unwrap_or(0.5)).await)
}

pub(crate) async fn correct(State(state): App, ids: Ids, Body(mut body): Body) -> Answer {
    let change = change(&mut body);
    body.finish()?;
    answer(state.memories.correct(&scope(), ids.text("fact_id"), &change).await)
}

pub(crate) async fn remove(State(state): App, ids: Ids) -> Answer {
    answer(state.memories.remove(&scope(), ids.text("fact_id")).await)
}

pub(crate) async fn import(State(state): App, Body(mut body): Body) -> Answer {
    let given = Value::Object(body.map().clone());
    let document = match MemoryDocument::deserialize(&given) {
        Ok(document) => document,
        Err(error) => body.refuse("value_error", "facts", format!("Input should be a memory: {error}"), &given).unwrap_or_default(),
    };
    check(&document, &mut body);
    body.finish()?;
    answer(state.memories.replace(&scope(), document).await)
}

pub(crate) async fn config(State(state): App) -> Answer {
    Ok(Json(json!(state.info.memory())))
}

pub(crate) async fn status(State(state): App) -> Answer {
    Ok(Json(json!({ "config": state.info.memory(), "data": state.memories.read(&scope()).await?.document })))
}

/// The signed-in user's.
fn scope() -> MemoryScope {
    MemoryScope::of_user(effective_user_id())
}

fn answer(document: Result<MemoryDocument, MemoryError>) -> Answer {
    match document {
        Ok(document) => Ok(Json(json!(document))),
        Err(MemoryError::NoFact(id)) => {
            Err(ApiError::NotFound(format!("Memory fact '{}' not found.", id.chars().take(80).collect::<String>())))
        }
        Err(error @ MemoryError::Duplicate) => Err(ApiError::Conflict(error.to_string())),
        Err(MemoryError::Store(error)) => Err(error.into()),
        Err(error) => Err(ApiError::Conflict(error.to_string())),
    }
}

/// The fields of a fact.
fn change(body: &mut Fields) -> FactChange {
    FactChange { content: words(body, "content", MOST_FACT_CHARS), category: words(body, "category", 64), confidence: confidence(body) }
}

/// A text that is not blank.
fn words(body: &mut Fields, key: &str, most: usize) -> Option<String> {
    let text = body.text(key)?;
    if text.trim().is_empty() {
        return body.refuse("string_too_short", key, "String should have at least 1 character", &text.into());
    }
    if text.chars().count() > most {
        return body.refuse("string_too_long", key, format!("String should have at most {most} characters"), &text.into());
    }
    Some(text)
}

fn confidence(body: &mut Fields) -> Option<f64> {
    let given = body.value("confidence")?.clone();
    match given.as_f64().filter(|number| (0.0..=1.0).contains(number)) {
        Some(number) => Some(number),
        None => body.refuse("float_type", "confidence", "Input should be a number from 0 to 1", &given),
    }
}

/// Refuses what would not be a memory although it has its shape.
fn check(document: &MemoryDocument, body: &mut Fields) {
    let (user, history) = (&document.user, &document.history);
    let of_user = [&user.work_context, &user.personal_context, &user.top_of_mind];
    let of_past = [&history.recent_months, &history.earlier_context, &history.long_term_background];
    if of_user.into_iter().chain(of_past).any(|note| !fits(&note.summary, MOST_NOTE_CHARS) || !is_label(&note.updated_at)) {
        let limits = format!("A note has at most {MOST_NOTE_CHARS} characters, and its updatedAt {MOST_LABEL_CHARS}");
        let _none: Option<()> = body.refuse("string_too_long", "user", limits, &Value::Null);
    }
    for (key, label) in [("version", &document.version), ("lastUpdated", &document.last_updated)] {
        if !is_label(label) {
            let limit = format!("String should have at most {MOST_LABEL_CHARS} characters");
            let _none: Option<()> = body.refuse("string_too_long", key, limit, &Value::Null);
        }
    }
    if document.facts.len() > MOST_FACTS {
        let _none: Option<()> = body.refuse("too_long", "facts", format!("List should have at most {MOST_FACTS} items"), &Value::Null);
    }
    if let Some(at) = document.facts.iter().position(|fact| !is_fact(fact)) {
        let needs = format!(
            "Fact {at} needs a content of at most {MOST_FACT_CHARS} characters and a confidence from 0 to 1; its id, category, status and \
             dates have at most {MOST_LABEL_CHARS} characters each, and all else {MOST_FACT_CHARS}"
        );
        let _none: Option<()> = body.refuse("value_error", "facts", needs, &Value::Null);
    }
}

fn is_fact(fact: &Fact) -> bool {
    let mut labels = [&fact.id, &fact.category, &fact.created_at].into_iter().chain(&fact.status).chain(&fact.updated_at);
    let beside = json!([fact.source, fact.source_error, fact.extra]).to_string();
    !fact.content.trim().is_empty()
        && (0.0..=1.0).contains(&fact.confidence)
        && labels.all(|label| is_label(label))
        && [&fact.content, &beside].into_iter().all(|text| fits(text, MOST_FACT_CHARS))
}

fn is_label(text: &str) -> bool {
    fits(text, MOST_LABEL_CHARS)
}

fn fits(text: &str, most: usize) -> bool {
    text.chars().count() <= most
}
