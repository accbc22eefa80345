//! Returns freed memory to the operating system.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use harness::runtime::tasks::{TaskKind, Tasks};

/// Interval between two returns. Memory that a busy server frees and uses again meanwhile is not
/// returned.
const INTERVAL: Duration = Duration::from_secs(20);

/// Size of a block that the C library does not retain, in bytes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BLOCK: libc::c_int = 256 << 10;

/// Number of returns so far.
static RETURNS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Value of [`RETURNS`] at the last return of this thread.
    static RETURNED: Cell<u64> = const { Cell::new(0) };
}

/// Starts the service. The allocators return freed pages only when others are allocated or freed, so
/// that an idle process would retain the memory of its last load.
pub(crate) fn spawn_return_loop(tasks: &Tasks) {
    set_retention();
    let token = tasks.token().clone();
    let workers = tokio::runtime::Handle::current().metrics().num_workers();
    let of_workers = tasks.clone();
    tasks.spawn(TaskKind::Service, "freed memory", async move {
        loop {
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
            RETURNS.fetch_add(1, Ordering::Relaxed);
            // Each task wakes an idle worker, which returns its memory before it sleeps again.
            for _ in 0..workers {
                of_workers.spawn(TaskKind::Service, "wake a worker", async {});
            }
            // Hundreds of megabytes take some milliseconds.
            if let Err(error) = tokio::task::spawn_blocking(return_freed_memory).await {
                tracing::warn!(%error, "cannot return freed memory");
            }
        }
    });
}

/// Returns the free memory of the worker that calls it, once for each return of the service. Each
/// thread has a heap of its own in the allocator, which other threads cannot return.
pub fn on_thread_park() {
    let returns = RETURNS.load(Ordering::Relaxed);
    if RETURNED.replace(returns) != returns {
        collect();
    }
}

/// Limits the free memory that the C library retains at the end of each thread's heap. SQLite
/// allocates by it. By default the limit grows to twice the largest block that was ever freed, and
/// `malloc_trim` does not return this memory.
#[expect(unsafe_code, reason = "the allocator has no safe interface for this")]
fn set_retention() {
    // SAFETY: the function can be called from any thread at any time.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        // Larger blocks are mapped, and unmapped when they are freed.
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BLOCK);
        libc::mallopt(libc::M_TRIM_THRESHOLD, LARGE_BLOCK);
    }
}

#[expect(unsafe_code, reason = "the allocators have no safe interface for this")]
fn return_freed_memory() {
    collect();
    // SQLite allocates by the C library.
    // SAFETY: the function can be called from any thread at any time.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Returns the free pages of the calling thread, and those that belong to no thread.
#[expect(unsafe_code, reason = "the allocator has no safe interface for this")]
fn collect() {
    // SAFETY: the function can be called from any thread at any time. Without `force` it frees
    // nothing that is in use.
    unsafe { libmimalloc_sys::mi_collect(false) }
}
