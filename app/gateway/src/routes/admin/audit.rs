//! `/v1/admin/audit`: the audit log, for administrators.

use axum::Json;
use axum::extract::State;
use deerflow_domain::accounts::{AuditAction, AuditQuery};
use serde_json::{Value, json};

use super::ADMINS_ONLY;
use crate::extract::Query;
use crate::guard::auth::require_admin;
use crate::routes::JsonResult;
use crate::state::SecurityState;

/// Maximum and default number of listed entries.
pub(crate) const MAX_ENTRIES: u32 = 1_000;
pub(crate) const DEFAULT_ENTRIES: u32 = 100;
/// Largest position of an entry.
const MAX_POSITION: u64 = i64::MAX as u64;

/// `GET /v1/admin/audit`: entries, the newest first. `next_before` is the position to continue at,
/// or null at the end.
pub(crate) async fn list(State(security): State<SecurityState>, query: Query) -> JsonResult {
    require_admin(ADMINS_ONLY)?;
    let limit = query.number("limit", 1..=MAX_ENTRIES.into())?;
    let limit = limit.unwrap_or(DEFAULT_ENTRIES.into());
    let before = query.number("before", 0..=MAX_POSITION)?;
    let actions: Vec<(&str, AuditAction)> = AuditAction::ALL
        .iter()
        .map(|action| (action.as_str(), *action))
        .collect();
    let selection = AuditQuery {
        user: query.get("user").map(str::to_owned),
        action: query.word("action", &actions)?,
        before: before.and_then(|before| i64::try_from(before).ok()),
        limit,
    };
    let entries = security.sign_in.stores.audit.list(&selection).await?;
    let is_full = u64::try_from(entries.len()).is_ok_and(|count| count == limit);
    let next_before = entries.last().filter(|_| is_full).map(|last| last.seq);
    let entries: Vec<Value> = entries.iter().map(|entry| entry.to_json()).collect();
    Ok(Json(json!({
        "entries": entries,
        "next_before": next_before,
    })))
}
