//! Environment of all nodes of a simulation: random numbers, time, and what is observed from
//! outside.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use deerflow_domain::channels::{AccountClaim, ChannelStores, InMemoryChannels};
use harness::clock::Clock;
use harness::runtime::process::Process;
use harness::testkit::seeded_rng::SeededRng;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{Counts, SimulationOutcome};
use crate::testkit::MemoryPlatform;

/// Chats, each of one person with the bot.
pub(super) const CHATS: [&str; 3] = ["c1", "c2", "c3"];

/// Call that sent a message and had its effect.
#[derive(Debug, Clone)]
pub(super) struct SendEffect {
    pub(super) delivery: Uuid,
    pub(super) text: String,
    /// Process of the caller, and its number of freezes at the call.
    pub(super) process: Process,
    pub(super) freezes: u32,
    /// `true` if the platform's answer was lost.
    pub(super) is_lost: bool,
}

/// Observations from outside of the nodes.
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) counts: Counts,
    /// Newest claim of the account.
    pub(super) newest: Option<AccountClaim>,
    /// Labels of the messages of each chat, in order.
    pub(super) written: BTreeMap<&'static str, Vec<String>>,
    /// Calls of the model by label.
    pub(super) calls: BTreeMap<String, usize>,
    pub(super) sends: Vec<SendEffect>,
    /// Deliveries whose success may not have been stored.
    pub(super) unrecorded: BTreeSet<Uuid>,
    violations: Vec<String>,
    trace: Vec<String>,
}

/// Environment of one simulation.
#[derive(Debug)]
pub(super) struct World {
    pub(super) chance: SeededRng,
    pub(super) platform: MemoryPlatform,
    /// `true` if the platform has idempotency keys.
    pub(super) has_keys: bool,
    /// The stores without faults.
    pub(super) stores: ChannelStores,
    /// Probability of a fault of a call, in thousandths.
    rate: usize,
    has_faults: AtomicBool,
    began: Instant,
    pub(super) observed: Mutex<Observed>,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let chance = SeededRng::of(seed);
        let has_keys = chance.of_thousand(700);
        let platform = MemoryPlatform::default();
        Self {
            rate: *chance.pick(&[0, 20, 60, 150]),
            platform: if has_keys {
                platform
            } else {
                platform.without_keys()
            },
            has_keys,
            chance,
            stores: InMemoryChannels::stores(),
            has_faults: AtomicBool::new(true),
            began: Instant::now(),
            observed: Mutex::default(),
        }
    }

    /// Ends injected faults; nodes that are down stay down.
    pub(super) fn end_faults(&self) {
        self.has_faults.store(false, Ordering::Relaxed);
        self.log("the faults end");
    }

    /// Decides whether a call fails here.
    pub(super) fn fails(&self) -> bool {
        let fails = self.has_faults.load(Ordering::Relaxed) && self.chance.of_thousand(self.rate);
        self.observed.lock().counts.faults += usize::from(fails);
        fails
    }

    /// Lets some time pass, so that a node can die or freeze at this point.
    pub(super) async fn pass_time(&self) {
        match self.chance.below(100) {
            0..50 => tokio::task::yield_now().await,
            50..97 => sleep(self.chance.millis(1, 60)).await,
            _ => sleep(self.chance.millis(60, 1_500)).await,
        }
    }

    pub(super) fn log(&self, text: impl std::fmt::Display) {
        let line = format!("{:>9.3} {text}", self.began.elapsed().as_secs_f64());
        self.observed.lock().trace.push(line);
    }

    pub(super) fn violation(&self, text: impl std::fmt::Display) {
        self.log(format_args!("VIOLATION: {text}"));
        self.observed.lock().violations.push(text.to_string());
    }

    /// Returns the time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn outcome(&self) -> SimulationOutcome {
        let mut observed = self.observed.lock();
        SimulationOutcome {
            violations: std::mem::take(&mut observed.violations),
            counts: observed.counts,
            trace: std::mem::take(&mut observed.trace),
        }
    }
}

/// Simulated time as a clock.
#[derive(Debug)]
pub(super) struct SimulatedClock(pub(super) Instant);

impl Clock for SimulatedClock {
    fn now(&self) -> DateTime<Utc> {
        let elapsed = TimeDelta::from_std(self.0.elapsed()).expect("a short simulation");
        DateTime::from_timestamp(1_800_000_000, 0).expect("a valid time") + elapsed
    }
}

impl World {
    /// Returns the clock of the stores.
    pub(super) fn clock(&self) -> SimulatedClock {
        SimulatedClock(self.began)
    }
}
