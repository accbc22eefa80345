//! Simulation of the runtime under random faults, on simulated time: several nodes, one store, one
//! bridge.
//!
//! The registry, planner, supervisor, dispatcher, node lease, recovery, execution and agent loop
//! are the real ones. Their environment is simulated: [`faulty_ports`] lose responses and delay
//! writes, [`process`](crate::runtime::process)es freeze and die at any await, clocks differ, and
//! clients reconnect with cursors to any node. All random choices come from one generator, and the
//! simulation runs on one OS thread with paused time, so that a seed always yields the same trace.
//! When the faults are over, [`invariants`] checks the store, the streams and the tool effects. One
//! seed in three also has threads that run a [`flow`].

mod agent;
mod clients;
mod fault_schedule;
mod faulty_bridge;
mod faulty_checkpoints;
mod faulty_notifier;
mod faulty_ports;
mod faulty_stores;
mod flow;
mod flow_invariants;
mod invariants;
mod nodes;
mod viewer;
mod world;

use std::sync::Arc;
use std::time::Duration;

use crate::runtime::actor_context::{ActorContext, scope};
use nodes::Cluster;
use world::World;

/// User of every run.
const ACTOR: &str = "ann";

/// Result of a simulation.
#[derive(Debug, PartialEq, Eq)]
struct SimulationOutcome {
    /// Hash of the whole trace.
    hash: u64,
    /// Last lines of the trace.
    tail: Vec<String>,
    /// Violated invariants.
    violations: Vec<String>,
    /// Counts of operations, to verify that the simulation is not empty.
    counts: Counts,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    runs: usize,
    faults: usize,
    attempts: usize,
    effects: usize,
    turns: usize,
    streams: usize,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.faults += other.faults;
        self.attempts += other.attempts;
        self.effects += other.effects;
        self.turns += other.turns;
        self.streams += other.streams;
    }
}

/// Simulates one seed and returns the outcome with the last `tail` lines of its trace.
fn simulate(seed: u64, tail: Option<usize>) -> SimulationOutcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let world = runtime.block_on(scope(ActorContext::user(ACTOR), run_simulation(seed, tail)));
    // Drop the tasks of dead processes before the outcome is read.
    drop(runtime);
    world.outcome()
}

async fn run_simulation(seed: u64, tail: Option<usize>) -> Arc<World> {
    let world = Arc::new(World::new(seed, tail));
    let cluster = Cluster::new(&world);
    cluster.begin().await;
    let clients = clients::begin(&world, &cluster);
    fault_schedule::inject_faults(&world, &cluster).await;
    let simulation = async {
        for client in clients {
            client
                .await
                .expect("not aborted")
                .expect("a client does not panic");
        }
        cluster.wait_until_ready().await;
        invariants::wait_until_finished(&world, &cluster).await;
        invariants::check_invariants(&world, &cluster).await;
        clients::request_final_runs(&world, &cluster).await;
    };
    if tokio::time::timeout(Duration::from_secs(900), simulation)
        .await
        .is_err()
    {
        world.violation("a task waits forever");
    }
    world
}

#[cfg(test)]
#[path = "simulation_tests.rs"]
mod tests;
