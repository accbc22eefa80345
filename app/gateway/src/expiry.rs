//! Threads whose time is over go with their files, or with their past alone.

use harness::runtime::actor_context::DEFAULT_USER_ID;
use harness::runtime::runs::store::StoreError;

use crate::state::GatewayState;

/// Threads that go in one transaction.
const AT_A_TIME: usize = 50;

/// Does to every thread whose time is over now what was said of it, and says how many there were.
pub async fn sweep_threads(state: &GatewayState) -> Result<usize, StoreError> {
    let mut done = 0;
    loop {
        let swept = state.threads.sweep(state.clock.now(), AT_A_TIME).await?;
        for thread in &swept.gone {
            let owner = thread.user_id.as_deref().unwrap_or(DEFAULT_USER_ID);
            if let Err(error) = state.files.delete_thread(owner, &thread.thread_id).await {
                tracing::error!(thread_id = %thread.thread_id, %error, "files of a deleted thread are left behind");
            }
        }
        let now = swept.gone.len() + swept.forgot;
        done += now;
        if now == 0 {
            return Ok(done);
        }
    }
}
