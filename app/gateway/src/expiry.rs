//! Threads whose time is over go, with their files.

use harness::runtime::actor_context::DEFAULT_USER_ID;
use harness::runtime::runs::store::StoreError;

use crate::state::GatewayState;

/// Threads that go in one transaction.
const AT_A_TIME: usize = 50;

/// Deletes every thread whose time is over now, and says how many there were.
pub async fn sweep_threads(state: &GatewayState) -> Result<usize, StoreError> {
    let mut gone = 0;
    loop {
        let swept = state.threads.sweep(state.clock.now(), AT_A_TIME).await?;
        for thread in &swept {
            let owner = thread.user_id.as_deref().unwrap_or(DEFAULT_USER_ID);
            if let Err(error) = state.files.delete_thread(owner, &thread.thread_id).await {
                tracing::error!(thread_id = %thread.thread_id, %error, "files of a deleted thread are left behind");
            }
        }
        gone += swept.len();
        if swept.is_empty() {
            return Ok(gone);
        }
    }
}
