//! The runtime under every fault that a seed thinks of, on simulated time: several nodes, one store, one bridge.
//!
//! The registry, planner, supervisor, queue, membership, recovery, execution and agent loop are the real ones. What is around
//! them is simulated: [`faulty`] stores lose answers and write late, [`process`](crate::runtime::process)es freeze and die at any
//! await, clocks disagree, and clients come back with cursors to whichever node answers. One source of chance decides
//! everything, on one thread with paused time, so that a seed always tells the same story. When the storm is over,
//! [`verdicts`] holds the store, the streams and the effects against what was promised.

mod agent;
mod clients;
mod faulty;
mod faulty_bell;
mod faulty_bridge;
mod line;
mod nodes;
mod storm;
mod verdicts;
mod viewer;
mod world;

use std::sync::Arc;
use std::time::Duration;

use crate::runtime::actor_context::{ActorContext, scope};
use nodes::Cluster;
use world::World;

/// The user of every run.
const ACTOR: &str = "ann";

/// What a simulation came to.
#[derive(Debug, PartialEq, Eq)]
struct Story {
    /// Everything that happened, in one number.
    hash: u64,
    /// The last that happened.
    tail: Vec<String>,
    /// Promises that were broken.
    violations: Vec<String>,
    /// What was done, to see that there is something in it.
    counts: Counts,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    runs: usize,
    faults: usize,
    attempts: usize,
    effects: usize,
    streams: usize,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.faults += other.faults;
        self.attempts += other.attempts;
        self.effects += other.effects;
        self.streams += other.streams;
    }
}

/// Tells the story of one seed, with its last `tail` lines.
fn simulate(seed: u64, tail: Option<usize>) -> Story {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let world = runtime.block_on(scope(ActorContext::user(ACTOR), play(seed, tail)));
    // What is left of the dead goes before the verdict is read.
    drop(runtime);
    world.story()
}

async fn play(seed: u64, tail: Option<usize>) -> Arc<World> {
    let world = Arc::new(World::new(seed, tail));
    let cluster = Cluster::new(&world);
    cluster.begin().await;
    let clients = clients::begin(&world, &cluster);
    storm::rage(&world, &cluster).await;
    let over = async {
        for client in clients {
            client
                .await
                .expect("not aborted")
                .expect("a client does not panic");
        }
        cluster.until_well().await;
        verdicts::until_quiet(&world, &cluster).await;
        verdicts::judge(&world, &cluster).await;
        clients::ask_once_more(&world, &cluster).await;
    };
    if tokio::time::timeout(Duration::from_secs(900), over)
        .await
        .is_err()
    {
        world.broken("something waits for ever");
    }
    world
}

#[cfg(test)]
#[path = "simulation_tests.rs"]
mod tests;
