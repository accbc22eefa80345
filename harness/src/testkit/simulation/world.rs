//! What all nodes of a story share: chance, the true time, the model provider's and the tools' own books, and the trace.

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
use super::{Counts, Story};
use crate::clock::Clock;
use crate::ids::{CheckpointId, IdSource, RunId, ThreadId};
use crate::runtime::process::Process;
use crate::runtime::runs::{Durability, RunStatus};
use crate::runtime::tasks::Tasks;
use crate::testkit::chance::Chance;

/// How much of the trace a failure shows.
const TAIL: usize = 100;

/// One story's world.
#[derive(Debug)]
pub(super) struct World {
    pub(super) chance: Chance,
    /// What goes on beside the nodes: clients, and writes under way.
    pub(super) tasks: Tasks,
    began: Instant,
    stormy: AtomicBool,
    trace: Mutex<(DefaultHasher, VecDeque<String>)>,
    tail: usize,
    violations: Mutex<Vec<String>>,
    pub(super) books: Mutex<Books>,
}

/// What was seen from outside of the nodes.
#[derive(Debug, Default)]
pub(super) struct Books {
    pub(super) counts: Counts,
    /// What clients asked for, by the label that stands in the message.
    pub(super) asked: BTreeMap<String, Asked>,
    /// What the model said, by message id.
    pub(super) said: BTreeMap<String, Said>,
    /// Answers under way: thread, label, and in which process since how many freezes.
    pub(super) speaking: BTreeMap<u64, (String, String, Process, u32)>,
    pub(super) calls: u64,
    /// What tools did, in order.
    pub(super) effects: Vec<Effect>,
    /// How often the end of a run was stored, and as what.
    pub(super) ends: BTreeMap<RunId, Vec<RunStatus>>,
    pub(super) views: Vec<View>,
}

/// A run that a client asked for.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) run_id: RunId,
    pub(super) thread_id: ThreadId,
    pub(super) durability: Durability,
    pub(super) steps: usize,
    /// Whether it was told that the run is accepted.
    pub(super) acked: bool,
}

/// An answer of the model.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) label: String,
    pub(super) text: String,
    pub(super) whole: bool,
}

/// Something that a tool did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Effect {
    pub(super) tool: &'static str,
    pub(super) key: String,
    pub(super) call_id: String,
    pub(super) run_id: RunId,
}

impl World {
    /// The world of a seed, whose story shows the last `tail` things that happened, or as many as a failure shows.
    pub(super) fn new(seed: u64, tail: Option<usize>) -> Self {
        Self {
            chance: Chance::of(seed),
            tasks: Tasks::new(),
            began: Instant::now(),
            stormy: AtomicBool::new(true),
            trace: Mutex::new((DefaultHasher::new(), VecDeque::new())),
            tail: tail.unwrap_or(TAIL),
            violations: Mutex::default(),
            books: Mutex::default(),
        }
    }

    /// Writes down what happens.
    pub(super) fn tell(&self, who: impl Display, what: impl Display) {
        let line = format!("{:>8} {who}: {what}", self.began.elapsed().as_millis());
        let mut trace = self.trace.lock();
        line.hash(&mut trace.0);
        if trace.1.len() == self.tail {
            trace.1.pop_front();
        }
        trace.1.push_back(line);
    }

    /// A promise was not kept.
    pub(super) fn broken(&self, what: impl Display) {
        self.tell("BROKEN", &what);
        self.violations.lock().push(what.to_string());
    }

    /// A fault is done.
    pub(super) fn fault(&self, who: impl Display, what: impl Display) {
        self.books.lock().counts.faults += 1;
        self.tell(who, what);
    }

    pub(super) fn is_stormy(&self) -> bool {
        self.stormy.load(Ordering::Relaxed)
    }

    /// From now on nothing fails any more.
    pub(super) fn calm_down(&self) {
        self.stormy.store(false, Ordering::Relaxed);
        self.tell("world", "the storm is over");
    }

    pub(super) fn story(&self) -> Story {
        let trace = self.trace.lock();
        let books = self.books.lock();
        Story {
            hash: trace.0.finish(),
            tail: trace.1.iter().cloned().collect(),
            violations: self.violations.lock().clone(),
            counts: Counts {
                runs: books.asked.len(),
                effects: books.effects.len(),
                streams: books.views.len(),
                ..books.counts
            },
        }
    }
}

/// A node's clock and ids: the true time, off by an amount that may change.
#[derive(Debug)]
pub(super) struct Watch {
    world: Arc<World>,
    off: Mutex<TimeDelta>,
    last_tick: Mutex<u64>,
}

impl Watch {
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

impl Clock for Watch {
    fn now(&self) -> DateTime<Utc> {
        let true_time = TimeDelta::from_std(self.world.began.elapsed()).expect("a short story");
        DateTime::from_timestamp(1_800_000_000, 0).expect("a moment") + true_time + *self.off.lock()
    }
}

impl IdSource for Watch {
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

    fn heed(&self, made_elsewhere: &CheckpointId) {
        if let Ok(uuid) = Uuid::parse_str(made_elsewhere.as_str()) {
            let mut last = self.last_tick.lock();
            *last = uuid.as_u64_pair().0.max(*last);
        }
    }
}
