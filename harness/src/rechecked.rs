//! A value that is read from its sources at most once per interval while it is used.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::runtime::tasks::{TaskKind, Tasks};

/// Maximum age of a value that is used without a check of its sources. A change on disk is seen by
/// the uses that start later than this after it.
const INTERVAL: Duration = Duration::from_secs(1);
/// Age from which a use starts a check in the background, so that later uses need not wait for one.
const AHEAD: Duration = Duration::from_millis(500);

/// Result of reading the sources of a value.
#[derive(Debug)]
pub(crate) enum Reading<T> {
    /// The value, which serves until its next check.
    Complete(T),
    /// Substitute for a value whose sources could not be read. It serves the use that read it.
    Substitute(T),
}

/// Slot for a value and the stamp of its sources. A value with another stamp is never used; stamps
/// count the changes that this process makes.
#[derive(Debug)]
pub(crate) struct Rechecked<T, S> {
    current: Mutex<Option<Checked<T, S>>>,
    /// Held while the sources are read, so that concurrent uses read them once.
    gate: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug)]
struct Checked<T, S> {
    value: T,
    stamp: S,
    /// Time before the sources were read.
    at: Instant,
}

/// Decision about the use of a checked value.
#[derive(Debug, PartialEq, Eq)]
enum Use<T> {
    /// The value is used.
    Fresh(T),
    /// The value is used, and its sources are checked in the background.
    Due(T),
    /// The sources are read first.
    Stale,
}

impl<T, S> Default for Rechecked<T, S> {
    fn default() -> Self {
        Self {
            current: Mutex::new(None),
            gate: Arc::default(),
        }
    }
}

impl<T, S> Rechecked<T, S> {
    /// Reports whether the slot holds no value.
    pub(crate) fn is_empty(&self) -> bool {
        self.current.lock().is_none()
    }
}

impl<T, S> Rechecked<T, S>
where
    T: Clone + Send + 'static,
    S: PartialEq + Send + 'static,
{
    /// Returns the value of the slot if its stamp is current and it was checked within the last
    /// second, else the value that `read` returns. `read` receives the previous value. Errors and
    /// substitutes are not stored.
    ///
    /// With `tasks`, a value that is older than half a second is checked in the background.
    ///
    /// # Errors
    /// The errors of `read`.
    pub(crate) async fn get<E, F>(
        self: &Arc<Self>,
        stamp: impl Fn() -> S,
        tasks: Option<&Tasks>,
        read: impl FnOnce(Option<T>) -> F,
    ) -> Result<T, E>
    where
        E: Send + 'static,
        F: Future<Output = Result<Reading<T>, E>> + Send + 'static,
    {
        match self.look_up(&stamp()) {
            Use::Fresh(value) => return Ok(value),
            Use::Due(value) => {
                if let Some(tasks) = tasks
                    && let Ok(gate) = self.gate.clone().try_lock_owned()
                {
                    let (slot, stamp, at) = (self.clone(), stamp(), Instant::now());
                    let reading = read(Some(value.clone()));
                    // The next use reads the sources itself and returns an error to its caller.
                    tasks.spawn(TaskKind::Service, "source check", async move {
                        let _gate = gate;
                        drop(slot.store(stamp, at, reading.await));
                    });
                }
                return Ok(value);
            }
            Use::Stale => {}
        }
        let _gate = self.gate.lock().await;
        if let Use::Fresh(value) | Use::Due(value) = self.look_up(&stamp()) {
            return Ok(value);
        }
        let (stamp, at) = (stamp(), Instant::now());
        let previous = self.previous();
        self.store(stamp, at, read(previous).await)
    }

    fn look_up(&self, stamp: &S) -> Use<T> {
        match &*self.current.lock() {
            Some(checked) if checked.stamp == *stamp => {
                decide(checked.at.elapsed(), &checked.value)
            }
            _ => Use::Stale,
        }
    }

    fn previous(&self) -> Option<T> {
        let current = self.current.lock();
        current.as_ref().map(|checked| checked.value.clone())
    }

    fn store<E>(&self, stamp: S, at: Instant, reading: Result<Reading<T>, E>) -> Result<T, E> {
        let (current, outcome) = match reading {
            Ok(Reading::Complete(value)) => {
                let checked = Checked {
                    value: value.clone(),
                    stamp,
                    at,
                };
                (Some(checked), Ok(value))
            }
            Ok(Reading::Substitute(value)) => (None, Ok(value)),
            Err(error) => (None, Err(error)),
        };
        *self.current.lock() = current;
        outcome
    }
}

/// Decides about the use of a value that was checked `age` ago.
fn decide<T: Clone>(age: Duration, value: &T) -> Use<T> {
    if age < AHEAD {
        Use::Fresh(value.clone())
    } else if age < INTERVAL {
        Use::Due(value.clone())
    } else {
        Use::Stale
    }
}

#[cfg(test)]
#[path = "rechecked_tests.rs"]
mod tests;
