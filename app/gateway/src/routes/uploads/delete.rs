//! `DELETE .../uploads/{filename}`.

use axum::Json;
use axum::extract::State;
use harness::runtime::actor_context::effective_user_id;
use harness::uploads::{place_named, remove};
use serde_json::json;

use crate::extract::Ids;
use crate::reads::require_thread;
use crate::routes::{Answer, App};

pub(crate) async fn delete(State(state): App, ids: Ids) -> Answer {
    let thread = ids.thread()?;
    let place = place_named(ids.text("filename"))?;
    require_thread(&state, &thread).await?;
    Ok(Json(json!(
        remove(&state.files.thread(&effective_user_id(), &thread), &place).await?
    )))
}
