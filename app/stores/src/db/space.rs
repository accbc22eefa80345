//! Decisions when disk space is low: which writes are allowed, and when the reserve is allocated
//! again.

/// Minimum free space in addition to the reserve, so that the next few writes do not fill the disk
/// again.
const MIN_HEADROOM: u64 = 16 << 20;

/// Effect of a write on the used space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteClass {
    /// Adds data that no caller depends on yet.
    Creation,
    /// Belongs to work that was accepted before.
    Progress,
    /// Deletes data, or cancels, ends or releases work.
    Release,
}

/// Returns `true` if a write is allowed while the reserve is released. `free` is the free disk
/// space, `size` the size of the reserve.
pub(crate) fn is_allowed(class: WriteClass, free: u64, size: u64) -> bool {
    match class {
        WriteClass::Creation => false,
        // A running run must not use the space that deletes and ends need.
        WriteClass::Progress => free >= size / 4,
        WriteClass::Release => true,
    }
}

/// Free space required in addition to the reserve before creations are accepted again.
pub(crate) fn headroom(size: u64) -> u64 {
    (size / 2).max(MIN_HEADROOM)
}

/// State of the disk, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Space {
    /// Size of the full reserve, and its current size.
    pub(crate) size: u64,
    pub(crate) reserved: u64,
    /// Free disk space.
    pub(crate) free: u64,
    /// Bytes of free pages inside the database file. Deleted rows leave them; they are not returned
    /// to the disk, but new rows use them.
    pub(crate) reusable: u64,
}

/// An allocation to try: the size of the reserve, and the bytes that must be free in addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReserveTarget {
    pub(crate) reserve: u64,
    pub(crate) headroom_bytes: u64,
}

impl Space {
    /// Returns the reserve to allocate, or `None` while space is low. If the database file has free
    /// pages, half a reserve is enough: a file that has grown into the reserve does not shrink when
    /// rows are deleted.
    pub(crate) fn reserve_target(self) -> Option<ReserveTarget> {
        let headroom = headroom(self.size);
        let inside = self.reusable.min(headroom);
        // Rows that fit into free pages still pass through the WAL, which needs disk space.
        let headroom_bytes = (headroom - inside).max(headroom / 4);
        let available = self
            .reserved
            .saturating_add(self.free)
            .checked_sub(headroom_bytes)?;
        let reserve = available.min(self.size);
        let enough = reserve >= self.size - inside.min(self.size / 2);
        (enough && (reserve > self.reserved || self.size == 0)).then_some(ReserveTarget {
            reserve,
            headroom_bytes,
        })
    }
}

#[cfg(test)]
#[path = "space_tests.rs"]
mod tests;
