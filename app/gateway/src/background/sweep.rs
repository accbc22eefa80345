//! Removal of expired threads or of their history, and of files whose thread no longer exists.

use harness::runtime::actor_context::{DEFAULT_USER_ID, Owner};
use harness::runtime::runs::DeletedThreads;
use harness::runtime::runs::store::StoreError;

use crate::state::GatewayState;

/// Threads removed in one transaction.
const BATCH_SIZE: usize = 50;

/// Applies the expiry of every expired thread, and returns their number.
pub async fn sweep_threads(state: &GatewayState) -> Result<usize, StoreError> {
    let mut total = 0;
    loop {
        let swept = state
            .thread_services
            .threads
            .sweep(state.process.clock.now(), BATCH_SIZE)
            .await?;
        let threads = swept.deleted.iter().map(|thread| &thread.thread_id);
        let deleted_threads = DeletedThreads::new(state.runs.runtime());
        deleted_threads.release(threads, &swept.runs).await;
        let deleted = || {
            swept.deleted.iter().map(|thread| {
                (
                    thread.user_id.as_deref().unwrap_or(DEFAULT_USER_ID),
                    &thread.thread_id,
                )
            })
        };
        // Removing many files takes long. If this process dies meanwhile, the next sweep removes
        // the remaining ones.
        for (owner, thread) in deleted() {
            if let Err(error) = state
                .thread_services
                .files
                .note_removal(owner, thread, true)
                .await
            {
                tracing::warn!(thread_id = %thread, %error, "failed to record the removal of a thread");
            }
        }
        for (owner, thread) in deleted() {
            if let Err(error) = state
                .thread_services
                .files
                .delete_thread(owner, thread)
                .await
            {
                tracing::error!(thread_id = %thread, %error, "failed to remove files of a deleted thread");
            }
        }
        let swept_count = swept.deleted.len() + swept.trimmed;
        total += swept_count;
        if swept_count == 0 {
            return Ok(total);
        }
    }
}

/// Finishes interrupted removals. A folder is removed only if its thread was recorded for removal
/// and has no row.
pub async fn sweep_files(state: &GatewayState) -> Result<(), StoreError> {
    let orphaned = state
        .thread_services
        .files
        .sweep()
        .await
        .unwrap_or_else(|error| {
            tracing::error!(%error, "failed to sweep files of deleted threads");
            Vec::new()
        });
    for files in orphaned {
        let thread = files.thread.clone();
        if state
            .thread_services
            .threads
            .get(&thread, &Owner::None)
            .await?
            .is_some()
        {
            continue;
        }
        match state.thread_services.files.delete_orphaned(files).await {
            Ok(()) => {
                tracing::info!(thread_id = %thread, "removed the files of a thread whose deletion was interrupted")
            }
            Err(error) => {
                tracing::error!(thread_id = %thread, %error, "failed to remove files of a deleted thread")
            }
        }
    }
    Ok(())
}
