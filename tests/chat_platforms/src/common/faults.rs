//! Scripted faults.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Fault of one call. Fakes apply those that make sense for the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Answers with this status and body, without an effect.
    Answer {
        /// HTTP status.
        status: u16,
        /// JSON body.
        body: Value,
        /// Headers.
        #[serde(default)]
        headers: HashMap<String, String>,
    },
    /// Refuses for this number of seconds, as the platform announces rate limits.
    RateLimited {
        /// Seconds; fractions where the platform has them.
        retry_after: f64,
        /// `true` to omit the delay from the answer.
        #[serde(default)]
        silent: bool,
    },
    /// Performs the call and closes the connection instead of answering.
    LoseReply,
    /// Closes the connection without an effect.
    Drop,
    /// Performs the call after this delay.
    Delay {
        /// Milliseconds.
        ms: u64,
    },
    /// Answers a success without an effect.
    Ignore,
}

/// Faults by name of the method; `*` stands for every method. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Mutex<HashMap<String, VecDeque<Fault>>>>);

impl Faults {
    /// Appends faults for the next calls of a method.
    pub fn script(&self, method: impl Into<String>, faults: impl IntoIterator<Item = Fault>) {
        self.0
            .lock()
            .entry(method.into())
            .or_default()
            .extend(faults);
    }

    /// Takes the fault of the next call of a method.
    pub fn take(&self, method: &str) -> Option<Fault> {
        let mut scripted = self.0.lock();
        let of_method = scripted.get_mut(method).and_then(VecDeque::pop_front);
        of_method.or_else(|| scripted.get_mut("*").and_then(VecDeque::pop_front))
    }

    /// Returns the number of faults of a method that no call has taken.
    pub fn remaining(&self, method: &str) -> usize {
        self.0.lock().get(method).map_or(0, VecDeque::len)
    }

    /// Forgets all faults.
    pub fn clear(&self) {
        self.0.lock().clear();
    }
}
