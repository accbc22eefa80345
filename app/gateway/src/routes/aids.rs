//! What models do beside the conversation: follow-up questions, polished drafts.

use axum::Json;
use axum::extract::State;
use deerflow_domain::threads::ThreadRecord;
use harness::agents::aids::Said;
use harness::ids::ThreadId;
use harness::messages::Content;
use harness::runtime::actor_context::{Owner, effective_user_id};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, App};
use crate::error::{ApiError, Issue};
use crate::extract::{Body, Fields, Ids};
use crate::reads::require_thread;
use crate::state::GatewayState;

/// Questions where nobody says how many.
const USUAL_SUGGESTIONS: u64 = 3;
/// The longest name of a model or a language that is read.
const MOST_NAME_CHARS: usize = 128;

/// `POST /threads/{t}/suggestions`: suggestions never fail, at worst there are none.
pub(crate) async fn suggest(State(state): App, ids: Ids, Body(mut body): Body) -> Answer {
    let thread = require_thread(&state, &ids.thread()?).await?;
    let said = said(&mut body);
    let wanted = body.number("n", 1..=5).unwrap_or(USUAL_SUGGESTIONS) as usize;
    let model = name(&mut body, "model_name");
    body.finish()?;
    let suggestions = match state.aids.suggester() {
        Some(suggester) => {
            let till = state.till();
            let tab = till.open();
            let suggestions = suggester
                .suggest(&said, wanted, model.as_deref(), tab.asker())
                .await;
            tab.book(Some(&thread.thread_id), thread.user_id.as_deref())
                .await;
            suggestions
        }
        None => Vec::new(),
    };
    Ok(Json(json!({ "suggestions": suggestions })))
}

/// The messages `[{role, content}]` of a body. Other roles are passed over.
fn said(body: &mut Fields) -> Vec<Said> {
    let Some(given) = body.value("messages").cloned() else {
        body.missing("messages");
        return Vec::new();
    };
    let Value::Array(messages) = &given else {
        return body
            .refuse(
                "list_type",
                "messages",
                "Input should be a valid list",
                &given,
            )
            .unwrap_or_default();
    };
    let mut said = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let role = message.get("role").and_then(Value::as_str);
        let content = message
            .get("content")
            .and_then(|content| Content::deserialize(content).ok());
        let (Some(role), Some(content)) = (role, content) else {
            let loc = vec!["body".into(), "messages".into(), index.into()];
            body.push(Issue::new(
                "model_attributes_type",
                loc,
                "Input should have a role and a content",
                message,
            ));
            continue;
        };
        match role {
            "user" | "human" => said.push(Said {
                by_user: true,
                text: content.text(),
            }),
            "assistant" | "ai" => said.push(Said {
                by_user: false,
                text: content.text(),
            }),
            _ => {}
        }
    }
    said
}

/// A text that names something.
pub(super) fn name(body: &mut Fields, key: &str) -> Option<String> {
    let text = body.text(key)?;
    if text.chars().count() > MOST_NAME_CHARS {
        return body.refuse(
            "string_too_long",
            key,
            format!("String should have at most {MOST_NAME_CHARS} characters"),
            &text.into(),
        );
    }
    Some(text)
}

/// The thread of this name, if it is there and the actor's.
async fn own_thread(
    state: &GatewayState,
    id: Option<&str>,
) -> Result<Option<ThreadRecord>, ApiError> {
    match id.and_then(|id| ThreadId::parse(id).ok()) {
        Some(thread) => Ok(state.threads.get(&thread, &Owner::Auto).await?),
        None => Ok(None),
    }
}

/// `POST /input-polish`.
pub(crate) async fn polish(State(state): App, Body(mut body): Body) -> Answer {
    let draft = body.required_text("text");
    let locale = name(&mut body, "locale");
    let thread = body.text("thread_id");
    body.finish()?;
    let polisher = state
        .aids
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
    let till = state.till();
    let tab = till.open();
    let rewritten = polisher
        .polish(&draft, locale.as_deref(), tab.asker())
        .await;
    // A draft may be the first of a thread that is not there yet.
    let thread = own_thread(&state, thread.as_deref()).await?;
    tab.book(
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
