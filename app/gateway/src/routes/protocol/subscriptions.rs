//! Subscriptions of a socket: which events it gets.

use std::collections::BTreeMap;

use super::answer::CommandError;
use crate::thread_log::{EventSelection, LogEvent};

/// Maximum number of subscriptions of a socket.
const MAX_SUBSCRIPTIONS: usize = 256;

/// Subscriptions by id.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    by_id: BTreeMap<String, Subscription>,
    created: u64,
}

#[derive(Debug)]
struct Subscription {
    selection: EventSelection,
    /// Position up to which events are not sent.
    after: u64,
}

impl Subscriptions {
    /// Adds a subscription of the events after `after` and returns its id. A subscription with the
    /// id `former` is replaced.
    pub(super) fn add(
        &mut self,
        selection: EventSelection,
        after: u64,
        former: Option<&str>,
    ) -> Result<String, CommandError> {
        let known = former.filter(|former| self.by_id.contains_key(*former));
        if known.is_none() && self.by_id.len() >= MAX_SUBSCRIPTIONS {
            let refused = format!("a socket has at most {MAX_SUBSCRIPTIONS} subscriptions");
            return Err(CommandError::invalid(refused));
        }
        let id = known.map_or_else(
            || {
                self.created += 1;
                format!("sub-{}", self.created)
            },
            str::to_owned,
        );
        self.by_id
            .insert(id.clone(), Subscription { selection, after });
        Ok(id)
    }

    /// Removes a subscription. Returns `false` if it does not exist.
    pub(super) fn remove(&mut self, id: &str) -> bool {
        self.by_id.remove(id).is_some()
    }

    /// Reports whether an event is sent.
    pub(super) fn select(&self, event: &LogEvent) -> bool {
        self.by_id
            .values()
            .any(|subscription| subscription.selects(event))
    }

    /// Reports whether an event is sent because of the subscription `id` alone.
    pub(super) fn select_only_by(&self, id: &str, event: &LogEvent) -> bool {
        let others = self.by_id.iter().filter(|(other, _)| *other != id);
        let is_sent = |id: &str| self.by_id.get(id).is_some_and(|one| one.selects(event));
        is_sent(id) && !others.into_iter().any(|(_, other)| other.selects(event))
    }
}

impl Subscription {
    fn selects(&self, event: &LogEvent) -> bool {
        event.seq > self.after && self.selection.contains(event)
    }
}
