//! `GET .../uploads/list`.

use axum::Json;
use axum::extract::State;
use harness::runtime::actor_context::effective_user_id;
use harness::uploads;
use serde_json::json;

use crate::extract::Ids;
use crate::routes::JsonResult;
use crate::state::ThreadServices;

pub(crate) async fn list(State(services): State<ThreadServices>, ids: Ids) -> JsonResult {
    let thread = ids.thread()?;
    Ok(Json(json!(
        uploads::list(
            &services.files.thread(&effective_user_id(), &thread),
            &thread
        )
        .await?
    )))
}
