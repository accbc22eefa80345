//! `DELETE .../uploads/{filename}`.

use axum::Json;
use axum::extract::State;
use harness::runtime::actor_context::effective_user_id;
use harness::uploads::{remove, upload_path};
use serde_json::json;

use crate::extract::Ids;
use crate::queries::threads::require_thread;
use crate::routes::{App, JsonResult};

pub(crate) async fn delete(State(state): App, ids: Ids) -> JsonResult {
    let thread = ids.thread()?;
    let path = upload_path(ids.text("filename"))?;
    require_thread(&state, &thread).await?;
    Ok(Json(json!(
        remove(
            &state
                .thread_services
                .files
                .thread(&effective_user_id(), &thread),
            &path
        )
        .await?
    )))
}
