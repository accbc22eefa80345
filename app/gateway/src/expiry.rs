//! Threads whose time is over go with their files, or with their past alone; and so do files whose thread is gone.

use harness::runtime::actor_context::{DEFAULT_USER_ID, Owner};
use harness::runtime::runs::store::StoreError;

use crate::state::GatewayState;

/// Threads that go in one transaction.
const AT_A_TIME: usize = 50;

/// Does to every thread whose time is over now what was said of it, and says how many there were.
pub async fn sweep_threads(state: &GatewayState) -> Result<usize, StoreError> {
    let mut done = 0;
    loop {
        let swept = state.threads.sweep(state.clock.now(), AT_A_TIME).await?;
        let gone = || {
            swept.gone.iter().map(|thread| {
                (
                    thread.user_id.as_deref().unwrap_or(DEFAULT_USER_ID),
                    &thread.thread_id,
                )
            })
        };
        // Many files take long to remove: should this process die meanwhile, a sweep finds the rest.
        for (owner, thread) in gone() {
            if let Err(error) = state.files.note_removal(owner, thread, true).await {
                tracing::warn!(thread_id = %thread, %error, "the removal of a thread cannot be noted");
            }
        }
        for (owner, thread) in gone() {
            if let Err(error) = state.files.delete_thread(owner, thread).await {
                tracing::error!(thread_id = %thread, %error, "files of a deleted thread are left behind");
            }
        }
        let now = swept.gone.len() + swept.forgot;
        done += now;
        if now == 0 {
            return Ok(done);
        }
    }
}

/// Removes what deletions left that broke off. Of folders only those whose thread was noted before its row went, and has none.
pub async fn sweep_files(state: &GatewayState) -> Result<(), StoreError> {
    let left = state.files.sweep().await.unwrap_or_else(|error| {
        tracing::error!(%error, "files of deleted threads are left behind");
        Vec::new()
    });
    for left in left {
        let thread = left.thread.clone();
        if state.threads.get(&thread, &Owner::None).await?.is_some() {
            continue;
        }
        match state.files.delete_left(left).await {
            Ok(()) => {
                tracing::info!(thread_id = %thread, "removed the files of a thread whose deletion had broken off")
            }
            Err(error) => {
                tracing::error!(thread_id = %thread, %error, "files of a deleted thread are left behind")
            }
        }
    }
    Ok(())
}
