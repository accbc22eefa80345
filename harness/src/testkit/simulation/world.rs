//! Shared environment of all nodes of a simulation: random numbers, true time, records of the model
//! provider and the tools, and the trace.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use tokio::time::Instant;
use uuid::Uuid;

use super::viewer::View;
use super::{Counts, SimulationOutcome};
use crate::clock::Clock;
use crate::ids::{CheckpointId, IdSource, RunId, ThreadId};
use crate::runtime::process::Process;
use crate::runtime::runs::{Durability, RunStatus};
use crate::runtime::tasks::Tasks;
use crate::testkit::seeded_rng::SeededRng;

/// Number of trace lines that a failure prints.
const TAIL: usize = 100;

/// One seed of this number plays flows.
const FLOWS_EVERY: u64 = 3;

/// Environment of one simulation.
#[derive(Debug)]
pub(super) struct World {
    pub(super) chance: SeededRng,
    /// `true` if some threads run a flow.
    pub(super) has_flows: bool,
    /// Tasks that survive crashes of nodes: clients, and writes in flight.
    pub(super) tasks: Tasks,
    began: Instant,
    faults_enabled: AtomicBool,
    trace: Mutex<(DefaultHasher, VecDeque<String>)>,
    tail: usize,
    violations: Mutex<Vec<String>>,
    pub(super) observations: Mutex<Observations>,
}

/// Observations from outside of the nodes.
#[derive(Debug, Default)]
pub(super) struct Observations {
    pub(super) counts: Counts,
    /// Requested runs, by the label in their message.
    pub(super) requested: BTreeMap<String, RequestedRun>,
    /// Answers of the model, by message id.
    pub(super) model_answer: BTreeMap<String, ModelAnswer>,
    /// Active answers: thread, label, process, and its number of freezes at the start.
    pub(super) active_answer: BTreeMap<u64, (String, String, Process, u32)>,
    pub(super) calls: u64,
    /// Executions of tools, in order.
    pub(super) effects: Vec<Effect>,
    /// Stored ends of each run.
    pub(super) ends: BTreeMap<RunId, Vec<RunStatus>>,
    pub(super) views: Vec<View>,
    /// Turns of flows, in order.
    pub(super) turns: Vec<FlowTurn>,
}

/// A turn of a flow that an adapter began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FlowTurn {
    pub(super) run: String,
    pub(super) node: String,
    pub(super) visit: u64,
    pub(super) invocation: String,
    pub(super) is_unsafe: bool,
}

/// A run that a client requested.
#[derive(Debug, Clone)]
pub(super) struct RequestedRun {
    pub(super) run_id: RunId,
    pub(super) thread_id: ThreadId,
    pub(super) durability: Durability,
    pub(super) steps: usize,
    /// `true` if the client received the acceptance.
    pub(super) acked: bool,
}

/// An answer of the model.
#[derive(Debug, Clone)]
pub(super) struct ModelAnswer {
    pub(super) label: String,
    pub(super) text: String,
    pub(super) whole: bool,
}

/// An execution of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Effect {
    pub(super) tool: &'static str,
    pub(super) key: String,
    pub(super) call_id: String,
    pub(super) run_id: RunId,
}

impl World {
    /// Creates the environment of a seed. Its trace retains the last `tail` lines, or the default
    /// number.
    pub(super) fn new(seed: u64, tail: Option<usize>) -> Self {
        Self {
            chance: SeededRng::of(seed),
            has_flows: seed.is_multiple_of(FLOWS_EVERY),
            tasks: Tasks::new(),
            began: Instant::now(),
            faults_enabled: AtomicBool::new(true),
            trace: Mutex::new((DefaultHasher::new(), VecDeque::new())),
            tail: tail.unwrap_or(TAIL),
            violations: Mutex::default(),
            observations: Mutex::default(),
        }
    }

    /// Appends a line to the trace.
    pub(super) fn log_event(&self, who: impl Display, what: impl Display) {
        let faulty_stores = format!("{:>8} {who}: {what}", self.began.elapsed().as_millis());
        let mut trace = self.trace.lock();
        faulty_stores.hash(&mut trace.0);
        if trace.1.len() == self.tail {
            trace.1.pop_front();
        }
        trace.1.push_back(faulty_stores);
    }

    /// Records a violated invariant.
    pub(super) fn violation(&self, what: impl Display) {
        self.log_event("BROKEN", &what);
        self.violations.lock().push(what.to_string());
    }

    /// Records an injected fault.
    pub(super) fn record_fault(&self, who: impl Display, what: impl Display) {
        self.observations.lock().counts.faults += 1;
        self.log_event(who, what);
    }

    pub(super) fn faults_enabled(&self) -> bool {
        self.faults_enabled.load(Ordering::Relaxed)
    }

    /// Disables all faults.
    pub(super) fn disable_faults(&self) {
        self.faults_enabled.store(false, Ordering::Relaxed);
        self.log_event("world", "faults are disabled");
    }

    pub(super) fn outcome(&self) -> SimulationOutcome {
        let trace = self.trace.lock();
        let observations = self.observations.lock();
        SimulationOutcome {
            hash: trace.0.finish(),
            tail: trace.1.iter().cloned().collect(),
            violations: self.violations.lock().clone(),
            counts: Counts {
                runs: observations.requested.len(),
                effects: observations.effects.len(),
                turns: observations.turns.len(),
                streams: observations.views.len(),
                ..observations.counts
            },
        }
    }
}

/// Clock and ids of a node: the true time with a variable offset.
#[derive(Debug)]
pub(super) struct SkewedClock {
    world: Arc<World>,
    off: Mutex<TimeDelta>,
    last_tick: Mutex<u64>,
}

impl SkewedClock {
    pub(super) fn new(world: &Arc<World>) -> Self {
        Self {
            world: world.clone(),
            off: Mutex::default(),
            last_tick: Mutex::default(),
        }
    }

    pub(super) fn set_off(&self, by: TimeDelta) {
        *self.off.lock() = by;
    }
}

impl Clock for SkewedClock {
    fn now(&self) -> DateTime<Utc> {
        let true_time =
            TimeDelta::from_std(self.world.began.elapsed()).expect("a short simulation");
        DateTime::from_timestamp(1_800_000_000, 0).expect("a moment") + true_time + *self.off.lock()
    }
}

impl IdSource for SkewedClock {
    fn random(&self) -> Uuid {
        let wide =
            (u128::from(self.world.chance.number()) << 64) | u128::from(self.world.chance.number());
        uuid::Builder::from_random_bytes(wide.to_be_bytes()).into_uuid()
    }

    fn ordered(&self) -> Uuid {
        let now = u64::try_from(self.now().timestamp_micros() * 10).expect("after 1970");
        let mut last = self.last_tick.lock();
        *last = now.max(*last + 1);
        Uuid::from_u64_pair(*last, self.world.chance.number())
    }

    fn heed(&self, observed: &CheckpointId) {
        if let Ok(uuid) = Uuid::parse_str(observed.as_str()) {
            let mut last = self.last_tick.lock();
            *last = uuid.as_u64_pair().0.max(*last);
        }
    }
}
