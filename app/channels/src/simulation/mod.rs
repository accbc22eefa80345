//! Simulation of the channel service under random faults, on simulated time: several nodes, one
//! platform, one store.
//!
//! Supervisor, leases, inbox, conversations, turns and outbox are the real ones, and so is the
//! runtime, which all nodes share and which never fails. Nodes are
//! [`process`](harness::runtime::process)es that freeze and die at any await. Their [`stores`] fail
//! before and after the effect of a call, the [`platform`] loses answers and acknowledgements,
//! refuses calls, breaks connections and delivers messages again. When the faults are over,
//! [`invariants`] compares what people wrote with what they see.

mod invariants;
mod nodes;
mod people;
mod platform;
mod stores;
mod world;

#[cfg(test)]
mod simulation_tests;

use std::sync::Arc;

use nodes::Cluster;
use world::World;

/// Counts of operations, to verify that the simulation is not empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    messages: usize,
    faults: usize,
    deaths: usize,
    freezes: usize,
    takeovers: usize,
    repetitions: usize,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.faults += other.faults;
        self.deaths += other.deaths;
        self.freezes += other.freezes;
        self.takeovers += other.takeovers;
        self.repetitions += other.repetitions;
    }
}

/// Result of a simulation.
#[derive(Debug)]
struct SimulationOutcome {
    /// Violated invariants.
    violations: Vec<String>,
    counts: Counts,
    /// Events in order.
    trace: Vec<String>,
}

/// Simulates one seed.
fn simulate(seed: u64) -> SimulationOutcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let world = runtime.block_on(run_simulation(seed));
    drop(runtime);
    world.outcome()
}

async fn run_simulation(seed: u64) -> Arc<World> {
    let world = Arc::new(World::new(seed));
    let mut cluster = Cluster::start(&world);
    tokio::join!(people::write(&world), nodes::inject_faults(&mut cluster));
    world.end_faults();
    cluster.restore();
    invariants::wait_until_finished(&world).await;
    invariants::check(&world).await;
    world
}
