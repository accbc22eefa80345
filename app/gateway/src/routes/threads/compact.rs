//! `POST /threads/{t}/compact`: compacts a thread's context at the user's request.

use axum::Json;
use axum::extract::State;
use harness::config::{ContextSize, ContextUnit};
use harness::ids::ThreadId;
use harness::runtime::runs::ThreadStatus;
use harness::state::ThreadState;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::update::Update;
use super::update_state::change_state;
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Ids, Issues};
use crate::queries::threads::require_thread;
use crate::requests::bodies::ThreadCompact;
use crate::routes::assist::name;
use crate::routes::{App, JsonResult};

pub(crate) async fn compact(State(state): App, ids: Ids, body: Body<ThreadCompact>) -> JsonResult {
    let thread = ids.thread()?;
    let (body, mut issues) = body.parts();
    let force = body.force.unwrap_or(true);
    let keep = keep(body.keep, &mut issues);
    let model = name(body.model_name, "model_name", &mut issues);
    name(body.agent_name, "agent_name", &mut issues);
    issues.finish()?;
    let record = require_thread(&state, &thread).await?;
    let compactor = state.agent_services.assist.compactor(model.as_deref());
    let compactor = compactor
        .ok_or_else(|| ApiError::Conflict("Context compaction is disabled.".to_owned()))?;
    if record.status == ThreadStatus::Busy {
        return Err(ApiError::Conflict(
            "Thread has a run in flight. Compact it after the run finishes.".to_owned(),
        ));
    }
    let Some(snapshot) = state.thread_services.checkpoints.get(&thread, None).await? else {
        return Ok(nothing_to_do(
            &thread,
            "not_enough_messages",
            &ThreadState::default(),
            0,
        ));
    };
    let original = snapshot.state;
    let usage_recorder = state.usage_recorder();
    let usage_scope = usage_recorder.open();
    let caller = usage_scope.caller().called("middleware:summarize");
    let compaction = if force {
        compactor.compact(&original, keep, caller).await
    } else {
        compactor.when_due(&original, caller).await
    };
    usage_scope
        .record(Some(&thread), record.user_id.as_deref())
        .await;
    let compaction = compaction.map_err(|error| {
        ApiError::Unavailable(format!("The conversation could not be summarized: {error}"))
    })?;
    let Some(compaction) = compaction else {
        let reason = if force {
            "not_enough_messages"
        } else {
            "not_needed"
        };
        return Ok(nothing_to_do(
            &thread,
            reason,
            &original,
            compactor.tokens(&original),
        ));
    };
    let values = compaction
        .update
        .channels
        .iter()
        .map(|(channel, value)| (channel.clone(), value.clone()))
        .collect();
    let update = Update {
        values,
        ..Update::default()
    };
    let changed = change_state(&state, &record, vec![update], None, Dialect::DeerFlow).await?;
    let mut after = original;
    let total_tokens = after
        .apply(compaction.update, &*state.process.ids)
        .map(|()| compactor.tokens(&after))
        .unwrap_or_default();
    Ok(Json(json!({
        "thread_id": thread,
        "compacted": true,
        "reason": null,
        "removed_message_count": compaction.removed,
        "preserved_message_count": compaction.preserved,
        "summary_updated": true,
        "checkpoint_id": changed.meta.checkpoint_id,
        "total_tokens": total_tokens,
    })))
}

fn nothing_to_do(
    thread: &ThreadId,
    reason: &str,
    state: &ThreadState,
    total_tokens: u64,
) -> Json<Value> {
    Json(json!({
        "thread_id": thread,
        "compacted": false,
        "reason": reason,
        "removed_message_count": 0,
        "preserved_message_count": state.messages().len(),
        "summary_updated": false,
        "checkpoint_id": null,
        "total_tokens": total_tokens,
    }))
}

/// Reads the amount to retain: `{type, value}`.
fn keep(sent: Option<Map<String, Value>>, issues: &mut Issues) -> Option<ContextSize> {
    let raw = Value::Object(sent?);
    let most = |size: &ContextSize| {
        if size.unit == ContextUnit::Fraction {
            1.0
        } else {
            f64::MAX
        }
    };
    match ContextSize::deserialize(&raw) {
        Ok(size) if size.value > 0.0 && size.value <= most(&size) => Some(size),
        _ => issues.refuse(
            "value_error",
            "keep",
            "Input should be {type: tokens, messages or fraction, value: a number above 0}",
            &raw,
        ),
    }
}
