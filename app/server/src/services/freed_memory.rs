//! Returns freed memory to the operating system.

use std::time::Duration;

use harness::runtime::tasks::{TaskKind, Tasks};

/// Interval between two returns. Memory that a busy server frees and uses again meanwhile is not
/// returned.
const INTERVAL: Duration = Duration::from_secs(20);

/// Starts the service. The allocators return freed pages only when others are allocated or freed, so
/// that an idle process would retain the memory of its last load.
pub(crate) fn spawn_return_loop(tasks: &Tasks) {
    let token = tasks.token().clone();
    tasks.spawn(TaskKind::Service, "freed memory", async move {
        loop {
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
            // Hundreds of megabytes take some milliseconds.
            if let Err(error) = tokio::task::spawn_blocking(return_freed_memory).await {
                tracing::warn!(%error, "cannot return freed memory");
            }
        }
    });
}

#[expect(unsafe_code, reason = "the allocators have no safe interface for this")]
fn return_freed_memory() {
    // SAFETY: the function can be called from any thread at any time. Without `force` it frees
    // nothing that is in use, and returns the free pages of the whole process.
    unsafe { libmimalloc_sys::mi_collect(false) }
    // SQLite allocates by the C library.
    // SAFETY: the function can be called from any thread at any time.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
}
