//! Faults of the nodes while clients use them.

use std::sync::Arc;

use chrono::TimeDelta;
use tokio::time::{Instant, sleep};

use super::nodes::{Cluster, LEASE};
use super::world::World;

/// Kills, freezes, disconnects, stops and skews nodes for a while, then disables all faults.
pub(super) async fn inject_faults(world: &Arc<World>, cluster: &Cluster) {
    let chance = &world.chance;
    let lease = usize::try_from(LEASE.as_millis()).expect("a short lease");
    let end = Instant::now() + chance.millis(4_000, 16_000);
    while Instant::now() < end {
        sleep(chance.millis(100, 3_000)).await;
        let node = cluster.any();
        match chance.below(12) {
            0..3 => node.kill(),
            3..5 => node.freeze(chance.millis(50, lease)),
            5..7 => node.freeze(chance.millis(lease, 3 * lease)),
            7..9 => node.cut_off(chance.millis(200, 2 * lease)),
            9 => node.set_clock(TimeDelta::milliseconds(chance.below(6_000) as i64 - 3_000)),
            10 => node.stop().await,
            _ => {}
        }
    }
    world.disable_faults();
}
