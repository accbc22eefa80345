//! Tests of the rules for scarce disk space and the reserve.

use super::*;

const MIB: u64 = 1 << 20;

fn space(free: u64, reusable: u64) -> Space {
    Space {
        size: 32 * MIB,
        reserved: 0,
        free: free * MIB,
        reusable: reusable * MIB,
    }
}

#[test]
fn only_releases_may_use_the_last_space() {
    let allowed = |free| {
        [
            WriteClass::Creation,
            WriteClass::Progress,
            WriteClass::Release,
        ]
        .map(|class| is_allowed(class, free * MIB, 32 * MIB))
    };
    assert_eq!(allowed(32), [false, true, true]);
    assert_eq!(allowed(8), [false, true, true]);
    assert_eq!(allowed(7), [false, false, true]);
    assert_eq!(allowed(0), [false, false, true]);
}

#[test]
fn released_reserve_alone_is_not_enough_space() {
    assert_eq!(space(32, 0).reserve_target(), None);
    assert_eq!(space(47, 0).reserve_target(), None);
    assert_eq!(
        space(48, 0).reserve_target(),
        Some(ReserveTarget {
            reserve: 32 * MIB,
            headroom_bytes: 16 * MIB
        })
    );
}

#[test]
fn free_pages_in_database_count_as_space() {
    assert_eq!(
        space(32, 500).reserve_target(),
        Some(ReserveTarget {
            reserve: 28 * MIB,
            headroom_bytes: 4 * MIB
        })
    );
    assert_eq!(
        space(20, 500).reserve_target(),
        Some(ReserveTarget {
            reserve: 16 * MIB,
            headroom_bytes: 4 * MIB
        })
    );
    assert_eq!(space(19, 500).reserve_target(), None);
}

#[test]
fn partial_reserve_grows_and_never_shrinks() {
    let partial = |free: u64| {
        Space {
            reserved: 16 * MIB,
            ..space(free, 0)
        }
        .reserve_target()
    };
    assert_eq!(
        partial(32),
        Some(ReserveTarget {
            reserve: 32 * MIB,
            headroom_bytes: 16 * MIB
        })
    );
    assert_eq!(partial(10), None);
}

#[test]
fn headroom_is_enough_without_reserve() {
    let none = |free: u64| {
        Space {
            size: 0,
            ..space(free, 0)
        }
        .reserve_target()
    };
    assert_eq!(none(15), None);
    assert_eq!(
        none(16),
        Some(ReserveTarget {
            reserve: 0,
            headroom_bytes: 16 * MIB
        })
    );
}
