//! Durable record of sessions at the other side of an adapter, so that a process that takes over a
//! run goes on with them and disposes them.

use deerflow_runtime::agent::{CallProgress, RunContext};
use deerflow_runtime::runs::store::StoreError;
use serde_json::json;
use uuid::Uuid;

use crate::adapter::{ErrorCategory, FlowError};
use crate::machine::SessionRecord;

/// Records the session of an agent.
///
/// # Errors
/// `storage_unavailable`, if the record cannot be written.
pub(super) async fn record_session(
    ctx: &RunContext,
    agent: &str,
    session: &SessionRecord,
) -> Result<(), FlowError> {
    let progress = CallProgress::Done(json!(session));
    let written = ctx.calls.write(&key(ctx, agent), progress).await;
    written.map_err(unavailable)
}

/// Returns the session that an earlier process recorded.
///
/// # Errors
/// `storage_unavailable`, if the record cannot be read.
pub(super) async fn recorded_session(
    ctx: &RunContext,
    agent: &str,
) -> Result<Option<SessionRecord>, FlowError> {
    let former = ctx.calls.former(&key(ctx, agent)).await;
    let Some(CallProgress::Done(session)) = former.map_err(unavailable)? else {
        return Ok(None);
    };
    Ok(serde_json::from_value(session)
        .inspect_err(|error| tracing::error!(agent, %error, "record of a session is unreadable"))
        .ok())
}

/// Returns the key of an agent's session: an id, because agents may have any name. Sub-flows have
/// sessions of their own.
fn key(ctx: &RunContext, agent: &str) -> String {
    let name = format!("session:{}:{agent}", ctx.namespace);
    Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).to_string()
}

fn unavailable(error: StoreError) -> FlowError {
    let message = format!("the session cannot be recorded: {error}");
    FlowError::new("storage_unavailable", ErrorCategory::Engine, message)
}
