//! Positions and ids of a run's events.

use std::collections::HashMap;
use std::sync::Arc;

use harness::ids::RunId;

use super::event::{Channel, Draft, EventKey, Identity};

/// Positions of one attempt. A later attempt publishes other events from the point at which it
/// resumes, so it has positions of its own, after all that its predecessor may have used.
const ATTEMPT: u64 = 1 << 24;

/// Assigns positions and ids to the events of a run.
#[derive(Debug)]
pub(super) struct RunNumbers {
    run: Arc<RunId>,
    /// Position of the first event of the run.
    first: u64,
    attempt: u32,
    /// Number of positions of the run before the next event.
    offset: u64,
    /// Number of events per id of a `lifecycle` event.
    repeated: HashMap<String, u32>,
}

impl RunNumbers {
    /// Creates the numbers of a run whose first event has the position `first`.
    pub(super) fn new(run: Arc<RunId>, first: u64) -> Self {
        Self {
            run,
            first,
            attempt: 1,
            offset: 0,
            repeated: HashMap::new(),
        }
    }

    /// Returns the attempt whose events are numbered.
    pub(super) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns the number of positions that the run has used.
    pub(super) fn count(&self) -> u64 {
        self.offset
    }

    /// Returns the position of the last event.
    pub(super) fn last(&self) -> u64 {
        (self.first + self.offset).saturating_sub(1)
    }

    /// Begins the events of a later attempt.
    pub(super) fn begin_attempt(&mut self, attempt: u32) {
        self.attempt = attempt;
        self.offset = u64::from(attempt.saturating_sub(1)) * ATTEMPT;
        self.repeated.clear();
    }

    /// Continues at the `place`-th position of the run.
    pub(super) fn continue_at(&mut self, place: u64) {
        self.offset = place;
    }

    /// Continues after positions that other readers may have used.
    pub(super) fn skip(&mut self, positions: u64) {
        self.offset += positions;
    }

    /// Returns the identity of the next event.
    pub(super) fn next(&mut self, draft: &Draft, timestamp: i64) -> Identity {
        let (seq, place) = (self.first + self.offset, self.offset);
        self.offset += 1;
        let event_id = match &draft.change {
            Some(change) if draft.channel == Channel::Lifecycle => {
                let path = draft.namespace.join("|");
                let id = format!("synth:{}:lc|{path}|{}", self.run, change.status);
                EventKey::Text(self.once(id, draft.namespace.is_empty()))
            }
            _ => EventKey::Place(self.run.clone(), place),
        };
        Identity {
            seq,
            event_id,
            timestamp,
        }
    }

    /// Makes the id of a nested agent's event unique. The events of the run itself are sent once
    /// over all attempts.
    fn once(&mut self, id: String, is_root: bool) -> String {
        let count = self.repeated.entry(id.clone()).or_default();
        *count += 1;
        if is_root || (*count == 1 && self.attempt == 1) {
            id
        } else {
            format!("{id}#{}.{count}", self.attempt)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::thread_log::event::StatusChange;

    fn run() -> Arc<RunId> {
        Arc::new(RunId::parse("r1").expect("an id"))
    }

    fn lifecycle(namespace: &[&str], status: &'static str) -> Draft {
        let namespace = namespace.iter().map(ToString::to_string).collect();
        let graph = "g".to_owned();
        Draft {
            change: Some(StatusChange { status, graph }),
            ..Draft::new(Channel::Lifecycle, namespace, &json!({}))
        }
    }

    #[test]
    fn positions_have_no_holes_within_an_attempt() {
        let mut numbers = RunNumbers::new(run(), 11);
        let values = Draft::new(Channel::Values, Vec::new(), &json!({}));
        let ids: Vec<_> = [
            numbers.next(&lifecycle(&[], "running"), 5),
            numbers.next(&values, 5),
            numbers.next(&values, 5),
        ]
        .into_iter()
        .map(|identity| (identity.seq, identity.event_id))
        .collect();
        let running = EventKey::Text("synth:r1:lc||running".to_owned());
        let of_place = |place| EventKey::Place(run(), place);
        assert_eq!(ids, [(11, running), (12, of_place(1)), (13, of_place(2))]);
        assert_eq!(numbers.count(), 3);
    }

    #[test]
    fn later_attempt_has_greater_positions_and_other_ids() {
        let mut numbers = RunNumbers::new(run(), 1);
        let started = lifecycle(&["tools:1"], "started");
        let first = numbers.next(&started, 0);
        numbers.begin_attempt(2);
        let second = numbers.next(&started, 0);
        assert!(second.seq > first.seq + 1_000_000);
        assert_ne!(first.event_id, second.event_id);
        let root = numbers.next(&lifecycle(&[], "completed"), 0);
        let completed = "synth:r1:lc||completed".to_owned();
        assert_eq!(root.event_id, EventKey::Text(completed));
    }
}
