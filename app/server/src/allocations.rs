//! Allocator that counts the calls of the program that it belongs to.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Number of counters. Threads share a counter only if there are more threads than counters.
const SHARDS: usize = 64;

/// Counter on a cache line of its own.
#[repr(align(128))]
struct Shard(AtomicU64);

static COUNTS: [Shard; SHARDS] = [const { Shard(AtomicU64::new(0)) }; SHARDS];

thread_local! {
    /// Counter of this thread; beyond [`SHARDS`] before the first call.
    static SHARD: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Returns the number of allocations and reallocations of this process so far. `None` if the
/// program uses another allocator than [`CountingAllocator`].
#[must_use]
pub fn count() -> Option<u64> {
    let sum = COUNTS
        .iter()
        .map(|shard| shard.0.load(Ordering::Relaxed))
        .sum();
    Some(sum).filter(|sum| *sum > 0)
}

/// Counts a call on the shard of this thread. It does not allocate.
fn record() {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let shard = SHARD.with(|shard| {
        if shard.get() >= SHARDS {
            shard.set(NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
        }
        shard.get()
    });
    COUNTS[shard].0.fetch_add(1, Ordering::Relaxed);
}

/// Allocator `A` with counted calls.
#[derive(Debug)]
pub struct CountingAllocator<A>(pub A);

#[expect(
    unsafe_code,
    reason = "the trait of allocators is unsafe; every call is passed on unchanged"
)]
// SAFETY: `A` upholds the contract of the trait, and each method passes its arguments and the
// result on. `record` neither allocates nor panics.
unsafe impl<A: GlobalAlloc> GlobalAlloc for CountingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        record();
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        record();
        // SAFETY: the caller upholds the contract of `alloc_zeroed`.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        record();
        // SAFETY: the caller upholds the contract of `realloc`.
        unsafe { self.0.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { self.0.dealloc(block, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::ServerAllocator;

    #[global_allocator]
    static ALLOCATOR: CountingAllocator<ServerAllocator> = CountingAllocator(ServerAllocator);

    #[test]
    fn allocations_of_all_threads_are_counted() {
        let before = count().expect("a count");
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| {
                    for size in 1..=250 {
                        std::hint::black_box(Vec::<u8>::with_capacity(size));
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("thread");
        }
        assert!(count().expect("a count") - before >= 1000);
    }
}
