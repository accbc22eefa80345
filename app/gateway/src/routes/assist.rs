//! Auxiliary model features: follow-up questions and polished drafts.

use axum::Json;
use axum::extract::State;
use deerflow_domain::threads::ThreadRecord;
use harness::agents::assist::DialogueMessage;
use harness::ids::ThreadId;
use harness::messages::Content;
use harness::runtime::actor_context::{Owner, effective_user_id};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{App, JsonResult};
use crate::error::{ApiError, Issue};
use crate::extract::{Body, Ids, Issues};
use crate::queries::threads::require_thread;
use crate::requests::bodies::{InputPolish, SuggestionsAsk};
use crate::state::GatewayState;

/// Default number of questions.
const DEFAULT_SUGGESTIONS: u64 = 3;
/// Maximum length of a model or language name, in characters.
const MAX_NAME_CHARS: usize = 128;

/// `POST /threads/{t}/suggestions`: never fails; on errors the list is empty.
pub(crate) async fn suggest(State(state): App, ids: Ids, body: Body<SuggestionsAsk>) -> JsonResult {
    let thread = require_thread(&state, &ids.thread()?).await?;
    let (body, mut issues) = body.parts();
    let conversation = conversation(&body.messages, &mut issues);
    let count = body.n.unwrap_or(DEFAULT_SUGGESTIONS) as usize;
    let model = name(body.model_name, "model_name", &mut issues);
    issues.finish()?;
    let suggestions = match state.agent_services.assist.suggester() {
        Some(suggester) => {
            let usage_recorder = state.usage_recorder();
            let usage_scope = usage_recorder.open();
            let suggestions = suggester
                .suggest(&conversation, count, model.as_deref(), usage_scope.caller())
                .await;
            usage_scope
                .record(Some(&thread.thread_id), thread.user_id.as_deref())
                .await;
            suggestions
        }
        None => Vec::new(),
    };
    Ok(Json(json!({ "suggestions": suggestions })))
}

/// Reads the messages `[{role, content}]` of a body. Other roles are skipped.
fn conversation(raw: &Value, issues: &mut Issues) -> Vec<DialogueMessage> {
    let messages = match raw {
        Value::Null => return Vec::new(),
        Value::Array(messages) => messages,
        other => {
            let message = "Input should be a valid list";
            return issues
                .refuse("list_type", "messages", message, other)
                .unwrap_or_default();
        }
    };
    let mut conversation = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let role = message.get("role").and_then(Value::as_str);
        let content = message
            .get("content")
            .and_then(|content| Content::deserialize(content).ok());
        let (Some(role), Some(content)) = (role, content) else {
            let loc = vec!["body".into(), "messages".into(), index.into()];
            issues.push(Issue::new(
                "model_attributes_type",
                loc,
                "Input should have a role and a content",
                message,
            ));
            continue;
        };
        match role {
            "user" | "human" => conversation.push(DialogueMessage {
                by_user: true,
                text: content.text(),
            }),
            "assistant" | "ai" => conversation.push(DialogueMessage {
                by_user: false,
                text: content.text(),
            }),
            _ => {}
        }
    }
    conversation
}

/// Reads a short name.
pub(super) fn name(text: Option<String>, key: &str, issues: &mut Issues) -> Option<String> {
    let text = text?;
    if text.chars().count() > MAX_NAME_CHARS {
        return issues.refuse(
            "string_too_long",
            key,
            format!("String should have at most {MAX_NAME_CHARS} characters"),
            &text.into(),
        );
    }
    Some(text)
}

/// Returns the thread, if it exists and belongs to the actor.
async fn own_thread(
    state: &GatewayState,
    id: Option<&str>,
) -> Result<Option<ThreadRecord>, ApiError> {
    match id.and_then(|id| ThreadId::parse(id).ok()) {
        Some(thread) => Ok(state
            .thread_services
            .threads
            .get(&thread, &Owner::Auto)
            .await?),
        None => Ok(None),
    }
}

/// `POST /input-polish`.
pub(crate) async fn polish(State(state): App, body: Body<InputPolish>) -> JsonResult {
    let (body, mut issues) = body.parts();
    let (draft, thread) = (body.text, body.thread_id);
    let locale = name(body.locale, "locale", &mut issues);
    issues.finish()?;
    let polisher = state
        .agent_services
        .assist
        .polisher()
        .ok_or_else(|| ApiError::NotFound("Input polishing is disabled".to_owned()))?;
    if draft.trim().is_empty() {
        return Err(ApiError::BadRequest("Text must not be empty".to_owned()));
    }
    if draft.chars().count() > polisher.max_chars {
        return Err(ApiError::BadRequest(format!(
            "Text must have at most {} characters",
            polisher.max_chars
        )));
    }
    let usage_recorder = state.usage_recorder();
    let usage_scope = usage_recorder.open();
    let rewritten = polisher
        .polish(&draft, locale.as_deref(), usage_scope.caller())
        .await;
    // The thread of a first draft may not exist yet.
    let thread = own_thread(&state, thread.as_deref()).await?;
    usage_scope
        .record(
            thread.map(|thread| thread.thread_id).as_ref(),
            Some(&effective_user_id()),
        )
        .await;
    let rewritten = rewritten.map_err(|_| {
        ApiError::Unavailable("The draft could not be rewritten. Try again later.".to_owned())
    })?;
    Ok(Json(
        json!({ "changed": rewritten != draft, "rewritten_text": rewritten }),
    ))
}
