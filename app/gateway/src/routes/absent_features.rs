//! Features of DeerFlow that this server does not have: the Lark integration and the live browser.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::{App, JsonResult};
use crate::error::ApiError;
use crate::extract::Ids;
use crate::guard::auth::require_admin;
use crate::queries::threads::require_thread;

const NO_LARK: &str = "The Lark integration is not available on this server. Chats on Lark and Feishu are configured as the channel `feishu`.";

/// `GET /integrations/lark/status`: the integration is not installed.
pub(crate) async fn lark_status() -> Json<Value> {
    Json(json!({
        "installed": false,
        "version": "",
        "manifest_version": null,
        "latest_available_version": null,
        "runtime_version_mismatch": false,
        "app_configured": false,
        "app_id": null,
        "app_brand": null,
        "skills_expected": 0,
        "skills_installed": 0,
        "installed_skills": [],
        "enabled_skills": [],
        "install_path": "/mnt/skills/integrations/lark",
        "cli": { "available": false, "path": null, "version": null, "error": NO_LARK },
        "auth": { "status": "unavailable", "message": NO_LARK, "user": null, "verified": false },
        "sandbox_runtime_mode": "none",
        "sandbox_runtime_ready": false,
        "sandbox_runtime_detail": NO_LARK,
    }))
}

/// `POST /integrations/lark/install`, for administrators.
pub(crate) async fn install_lark() -> JsonResult {
    require_admin("Admin privileges required to install the Lark integration.")?;
    use_lark().await
}

/// The other operations of the Lark integration.
pub(crate) async fn use_lark() -> JsonResult {
    Err(ApiError::NotSupported(NO_LARK.to_owned()))
}

/// `POST /threads/{t}/browser/navigate`.
pub(crate) async fn navigate_browser(State(state): App, ids: Ids) -> JsonResult {
    require_thread(&state, &ids.thread()?).await?;
    Err(ApiError::NotFound(
        "Browser automation is not enabled".to_owned(),
    ))
}
