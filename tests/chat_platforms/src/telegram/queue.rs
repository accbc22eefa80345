//! Queue of updates: confirmed by the offset, kept until then, one poller.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::failure::ApiFailure;

/// Updates that are delivered without a list of allowed ones.
const BY_DEFAULT: &[&str] = &[
    "message",
    "edited_message",
    "callback_query",
    "my_chat_member",
    "stopped_message_generation",
];

/// Waiting updates and the settings of their delivery.
#[derive(Debug)]
pub(super) struct UpdateQueue {
    waiting: VecDeque<(i64, Value)>,
    next: i64,
    allowed: Option<Vec<String>>,
    /// Address of the webhook; polling is refused while it is set.
    pub(super) webhook: Option<String>,
    /// Number of the newest poller; older ones are refused.
    pub(super) poller: u64,
}

impl UpdateQueue {
    /// Creates an empty queue.
    pub(super) fn new(first: i64, webhook: Option<String>) -> Self {
        Self {
            waiting: VecDeque::new(),
            next: first,
            allowed: None,
            webhook,
            poller: 0,
        }
    }

    /// Appends an update of a kind, unless the bot does not want it.
    pub(super) fn push(&mut self, kind: &str, content: Value) {
        let wanted = match &self.allowed {
            Some(allowed) => allowed.iter().any(|name| name == kind),
            None => BY_DEFAULT.contains(&kind),
        };
        if wanted {
            let id = self.take_id();
            self.waiting
                .push_back((id, json!({"update_id": id, kind: content})));
        }
    }

    /// Appends an update as it is; an `update_id` is added if it is an object without one.
    pub(super) fn push_raw(&mut self, mut update: Value) {
        let id = self.take_id();
        if let Value::Object(fields) = &mut update {
            fields.entry("update_id").or_insert_with(|| json!(id));
        }
        self.waiting.push_back((id, update));
    }

    fn take_id(&mut self) -> i64 {
        let id = self.next;
        self.next += 1;
        id
    }

    /// Sets the kinds of updates that are queued from now on; an empty list restores the default.
    pub(super) fn allow(&mut self, allowed: &Value) -> Result<(), ApiFailure> {
        let names: Vec<String> = serde_json::from_value(allowed.clone())
            .map_err(|_| ApiFailure::bad("can't parse allowed_updates JSON object"))?;
        self.allowed = (!names.is_empty()).then_some(names);
        Ok(())
    }

    /// Deletes the updates before an offset. A negative one deletes all but the newest.
    pub(super) fn confirm(&mut self, offset: i64) {
        if offset < 0 {
            let keep = offset.unsigned_abs() as usize;
            while self.waiting.len() > keep {
                self.waiting.pop_front();
            }
        } else {
            while self.waiting.front().is_some_and(|(id, _)| *id < offset) {
                self.waiting.pop_front();
            }
        }
    }

    /// Returns waiting updates; they stay until they are confirmed.
    pub(super) fn batch(&self, limit: usize) -> Vec<Value> {
        self.waiting
            .iter()
            .take(limit)
            .map(|(_, update)| update.clone())
            .collect()
    }

    /// Deletes all updates.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Returns the number of waiting updates.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(queue: &UpdateQueue) -> Vec<i64> {
        queue
            .batch(100)
            .iter()
            .filter_map(|update| update["update_id"].as_i64())
            .collect()
    }

    #[test]
    fn updates_stay_until_the_offset_confirms_them() {
        let mut queue = UpdateQueue::new(10, None);
        for _ in 0..4 {
            queue.push("message", json!({}));
        }
        assert_eq!(queue.batch(2).len(), 2);
        assert_eq!(ids(&queue), [10, 11, 12, 13]);
        queue.confirm(12);
        assert_eq!(ids(&queue), [12, 13]);
        queue.confirm(-1);
        assert_eq!(ids(&queue), [13]);
        queue.confirm(14);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn kinds_that_are_not_allowed_are_not_queued() {
        let mut queue = UpdateQueue::new(1, None);
        queue.allow(&json!(["message"])).unwrap();
        queue.push("callback_query", json!({}));
        queue.push("message", json!({}));
        assert_eq!(ids(&queue), [1]);
        queue.allow(&json!([])).unwrap();
        queue.push("callback_query", json!({}));
        queue.push("message_reaction", json!({}));
        assert_eq!(ids(&queue), [1, 2]);
        assert!(queue.allow(&json!("message")).is_err());
    }
}
