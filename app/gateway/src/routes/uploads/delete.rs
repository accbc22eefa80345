//! `DELETE .../uploads/{filename}`.

use axum::Json;
use axum::extract::State;
use harness::runtime::actor_context::effective_user_id;
use harness::sandbox::Fault;
use serde_json::json;

use super::markdown;
use super::name::place_of;
use crate::error::ApiError;
use crate::extract::Ids;
use crate::reads::require_thread;
use crate::routes::{Answer, App};

pub(crate) async fn delete(State(state): App, ids: Ids) -> Answer {
    let thread = ids.thread()?;
    let name = ids.text("filename");
    // Here a name with a way in it is a mistake: it is not cut down to another file's name.
    let place = place_of(name).filter(|place| place.file_name() == name);
    let place = place.ok_or_else(|| ApiError::BadRequest("Invalid filename".to_owned()))?;
    require_thread(&state, &thread).await?;
    let files = state.files.thread(&effective_user_id(), &thread);
    match files.remove_file(&place).await {
        Ok(true) => {
            if let Err(error) = markdown::remove_of(&files, &place).await {
                tracing::warn!(%error, "the text of a document that is gone cannot be removed");
            }
            Ok(Json(json!({ "success": true, "message": format!("Deleted {name}") })))
        }
        Ok(false) => Err(ApiError::NotFound(format!("File not found: {name}"))),
        Err(error) if matches!(error.fault(), Some(Fault::IsDirectory | Fault::NotRegular | Fault::Symlink)) => {
            Err(ApiError::BadRequest(format!("Not a file: {name}")))
        }
        Err(error) => Err(error.into()),
    }
}
