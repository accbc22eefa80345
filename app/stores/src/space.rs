//! Decisions on a disk that is short of space: which writes go on, and when the reserve is taken again.

/// Part of a small reserve that must be free besides, so that the next few writes do not fill the disk again.
const LEAST_HEADROOM: u64 = 16 << 20;

/// Effect of a write on the space that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Adds something new that nobody waits for yet.
    Creation,
    /// Belongs to work that was accepted before.
    Progress,
    /// Deletes, cancels, ends or gives something back.
    Release,
}

/// Decides whether a write may go on while the reserve is released. `free` is what the disk has left, `size` the size of the reserve.
pub(crate) fn may_go_on(class: Class, free: u64, size: u64) -> bool {
    match class {
        Class::Creation => false,
        // A run that goes on must not use up what deletes and ends need.
        Class::Progress => free >= size / 4,
        Class::Release => true,
    }
}

/// Free space that must be there besides the reserve before creations are taken again.
pub(crate) fn headroom(size: u64) -> u64 {
    (size / 2).max(LEAST_HEADROOM)
}

/// State of the disk, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Space {
    /// What the reserve has when it is whole, and what it holds now.
    pub(crate) size: u64,
    pub(crate) held: u64,
    /// What the disk has left.
    pub(crate) free: u64,
    /// What deleted rows left inside of the database file: the disk does not get it back, but new rows use it.
    pub(crate) reusable: u64,
}

/// An allocation to try: the bytes of the reserve, and bytes that must be free besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Take {
    pub(crate) reserve: u64,
    pub(crate) besides: u64,
}

impl Space {
    /// Decides what the reserve can take, or take more; `None` while space is low. Where the database has room inside, half a reserve
    /// will do: a file that has grown into the reserve keeps its size, whatever is deleted.
    pub(crate) fn take(self) -> Option<Take> {
        let headroom = headroom(self.size);
        let inside = self.reusable.min(headroom);
        // Rows that find room inside still pass through the log, which does not.
        let besides = (headroom - inside).max(headroom / 4);
        let left = self.held.saturating_add(self.free).checked_sub(besides)?;
        let reserve = left.min(self.size);
        let enough = reserve >= self.size - inside.min(self.size / 2);
        (enough && (reserve > self.held || self.size == 0)).then_some(Take { reserve, besides })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn space(free: u64, reusable: u64) -> Space {
        Space {
            size: 32 * MIB,
            held: 0,
            free: free * MIB,
            reusable: reusable * MIB,
        }
    }

    #[test]
    fn only_what_frees_space_goes_on_to_the_last_byte() {
        let allowed = |free| {
            [Class::Creation, Class::Progress, Class::Release]
                .map(|class| may_go_on(class, free * MIB, 32 * MIB))
        };
        assert_eq!(allowed(32), [false, true, true]);
        assert_eq!(allowed(8), [false, true, true]);
        assert_eq!(allowed(7), [false, false, true]);
        assert_eq!(allowed(0), [false, false, true]);
    }

    #[test]
    fn a_released_reserve_alone_is_no_space() {
        assert_eq!(space(32, 0).take(), None);
        assert_eq!(space(47, 0).take(), None);
        assert_eq!(
            space(48, 0).take(),
            Some(Take {
                reserve: 32 * MIB,
                besides: 16 * MIB
            })
        );
    }

    #[test]
    fn space_inside_of_the_database_counts() {
        assert_eq!(
            space(32, 500).take(),
            Some(Take {
                reserve: 28 * MIB,
                besides: 4 * MIB
            })
        );
        assert_eq!(
            space(20, 500).take(),
            Some(Take {
                reserve: 16 * MIB,
                besides: 4 * MIB
            })
        );
        assert_eq!(space(19, 500).take(), None);
    }

    #[test]
    fn a_partial_reserve_grows_and_never_shrinks() {
        let partial = |free: u64| {
            Space {
                held: 16 * MIB,
                ..space(free, 0)
            }
            .take()
        };
        assert_eq!(
            partial(32),
            Some(Take {
                reserve: 32 * MIB,
                besides: 16 * MIB
            })
        );
        assert_eq!(partial(10), None);
    }

    #[test]
    fn without_a_reserve_headroom_is_enough() {
        let none = |free: u64| {
            Space {
                size: 0,
                ..space(free, 0)
            }
            .take()
        };
        assert_eq!(none(15), None);
        assert_eq!(
            none(16),
            Some(Take {
                reserve: 0,
                besides: 16 * MIB
            })
        );
    }
}
