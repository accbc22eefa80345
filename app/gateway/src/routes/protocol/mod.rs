//! Streaming protocol of the newest SDKs: commands, and the events of a thread as an event stream or
//! over a WebSocket.

mod answer;
mod command;
mod events;
mod input_respond;
mod metered_socket;
mod pending_events;
mod run_start;
mod session;
mod socket;
mod subscriptions;

pub(crate) use command::commands;
pub(crate) use events::events;
pub(crate) use socket::socket;

use deerflow_domain::threads::ThreadRecord;
use harness::ids::ThreadId;
use harness::runtime::actor_context::Owner;

use crate::error::ApiError;
use crate::state::GatewayState;
use crate::thread_log::LogReader;

/// Opens a reader of a thread's events after `since`. The thread need not exist yet.
///
/// # Errors
/// [`ApiError::ThreadNotFound`] if the thread belongs to another user.
async fn open_log(
    state: &GatewayState,
    thread: &ThreadId,
    since: u64,
) -> Result<LogReader, ApiError> {
    let existing = own_thread(state, thread).await?;
    let created_at = existing.map(|thread| thread.created_at);
    Ok(state.thread_logs.open(thread, created_at, since))
}

/// Returns the thread, if it exists.
///
/// # Errors
/// [`ApiError::ThreadNotFound`] if it belongs to another user.
async fn own_thread(
    state: &GatewayState,
    thread: &ThreadId,
) -> Result<Option<ThreadRecord>, ApiError> {
    let threads = &state.thread_services.threads;
    let own = threads.get(thread, &Owner::Auto).await?;
    if own.is_none() && threads.get(thread, &Owner::None).await?.is_some() {
        return Err(ApiError::ThreadNotFound(thread.to_string()));
    }
    Ok(own)
}
