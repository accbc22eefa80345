//! State of the setup, and the rule of who may create the first administrator.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde_json::json;
use tokio::time::Instant;

use super::visitor::Visitor;
use crate::error::{ApiError, SignInFailure};
use crate::routes::JsonResult;
use crate::state::{SecurityState, SignInServices};

/// `GET /v1/auth/setup-status`: whether there is an administrator, and whether people may register.
pub(crate) async fn setup_status(State(security): State<SecurityState>) -> JsonResult {
    let sign_in = &security.sign_in;
    let census = sign_in.stores.accounts.census().await?;
    Ok(Json(json!({
        "needs_setup": census.administrators == 0,
        "registration_enabled": sign_in.rules.allows_registration(),
    })))
}

/// Requires that there is no administrator, and that the caller may create one.
pub(super) async fn require_setup(
    sign_in: &SignInServices,
    visitor: &Visitor,
) -> Result<(), ApiError> {
    if sign_in.stores.accounts.census().await?.administrators > 0 {
        return Err(SignInFailure::already_initialized().into());
    }
    let since_start = Instant::now() - sign_in.started_at;
    let open = sign_in.rules.setup_time();
    if may_set_up(visitor.is_local, since_start, open) {
        return Ok(());
    }
    let minutes = open.as_secs() / 60;
    let until = if minutes == 0 {
        "auth.setup_minutes is 0".to_owned()
    } else {
        format!("it is open for {minutes} minutes after a start of the server")
    };
    Err(ApiError::Forbidden(format!(
        "Setup from other machines is closed: {until}. Restart the server, open this page on the machine of the server, or create the administrator there with `deerflow users create --admin`."
    )))
}

/// Decides whether a caller may create the first administrator.
fn may_set_up(is_local: bool, since_start: Duration, open: Duration) -> bool {
    is_local || since_start < open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_may_set_up_for_a_time() {
        let open = Duration::from_secs(1_800);
        let just = Duration::from_millis(1);
        assert!(may_set_up(false, open - just, open));
        assert!(!may_set_up(false, open, open));
        assert!(may_set_up(true, open, open));
        assert!(!may_set_up(false, Duration::ZERO, Duration::ZERO));
        assert!(may_set_up(true, Duration::ZERO, Duration::ZERO));
    }
}
