//! The allocator of the server: mimalloc for small blocks, the C library for large ones.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;

use mimalloc::MiMalloc;

/// Size from which a block comes from the C library, in bytes.
const LARGE_BLOCK: usize = 1 << 20;

/// Allocates large blocks by the C library, which maps each by itself and unmaps it when it is freed.
/// mimalloc retains freed blocks for the thread that allocated them: while a large request passes
/// from thread to thread, each of its copies would stay in memory.
#[derive(Debug, Clone, Copy)]
pub struct ServerAllocator;

fn is_large(size: usize) -> bool {
    size >= LARGE_BLOCK
}

#[expect(
    unsafe_code,
    reason = "the trait of allocators is unsafe; every block is passed on to its allocator"
)]
// SAFETY: both allocators uphold the contract of the trait. The layout of a block has the size that
// was requested last for it, so a block is always passed to the allocator that it came from.
unsafe impl GlobalAlloc for ServerAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe {
            if is_large(layout.size()) {
                System.alloc(layout)
            } else {
                MiMalloc.alloc(layout)
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc_zeroed`.
        unsafe {
            if is_large(layout.size()) {
                System.alloc_zeroed(layout)
            } else {
                MiMalloc.alloc_zeroed(layout)
            }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `realloc`, so `size` is valid for the alignment.
        // Both blocks have room for the smaller of the two sizes, and do not overlap.
        unsafe {
            match (is_large(layout.size()), is_large(size)) {
                (true, true) => System.realloc(block, layout, size),
                (false, false) => MiMalloc.realloc(block, layout, size),
                _ => {
                    let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                    if !moved.is_null() {
                        ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    moved
                }
            }
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe {
            if is_large(layout.size()) {
                System.dealloc(block, layout);
            } else {
                MiMalloc.dealloc(block, layout);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the byte that the test writes at a position.
    fn byte(at: usize) -> u8 {
        at.to_le_bytes()[0]
    }

    // The tests of this crate use the allocator.
    #[test]
    fn blocks_keep_their_bytes_across_the_limit() {
        let mut bytes: Vec<u8> = Vec::new();
        for size in [1, 4_096, LARGE_BLOCK - 1, LARGE_BLOCK, 5 * LARGE_BLOCK] {
            let first = bytes.len();
            bytes.reserve_exact(size - first);
            bytes.extend((first..size).map(byte));
        }
        for size in [3 * LARGE_BLOCK, LARGE_BLOCK, LARGE_BLOCK - 1, 10] {
            bytes.truncate(size);
            bytes.shrink_to_fit();
            assert!(
                bytes
                    .iter()
                    .enumerate()
                    .all(|(at, found)| *found == byte(at))
            );
        }
        let zeros = [LARGE_BLOCK - 1, LARGE_BLOCK].map(|size| vec![0_u8; size]);
        assert!(zeros.iter().flatten().all(|byte| *byte == 0));
    }
}
