//! Journal rows with the progress of nodes.

use std::cmp::Ordering;

use serde_json::json;

use super::bounded::bounded;
use super::events::RunEventCallback;
use crate::ports::{EventContent, NODE_EVENT, NODE_EVENTS_OMITTED};

/// Maximum number of rows with progress of nodes per attempt of a run.
const MAX_ROWS: u64 = 20_000;

impl RunEventCallback {
    /// Journals the progress of a node, up to a number of rows; one more row states the omission.
    pub(super) fn node_event(&mut self, payload: &EventContent) {
        match self.node_events.cmp(&MAX_ROWS) {
            Ordering::Less => {
                let content = bounded(payload, self.max_trace_chars);
                self.trace(NODE_EVENT, content);
            }
            Ordering::Equal => self.trace(NODE_EVENTS_OMITTED, json!({ "limit": MAX_ROWS })),
            Ordering::Greater => return,
        }
        self.node_events += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use deerflow_core::clock::SystemClock;
    use deerflow_core::ids::{RunId, ThreadId};

    use super::*;

    #[test]
    fn rows_of_nodes_end_with_one_that_states_the_omission() {
        let (thread, run) = (ThreadId::parse("t").unwrap(), RunId::parse("r").unwrap());
        let mut journal = RunEventCallback::new(thread, run, None, Arc::new(SystemClock), 1_000);
        for _ in 0..MAX_ROWS + 5 {
            journal.node_event(&json!({"nodeId": "a"}).into());
        }
        let rows = journal.flush();
        assert_eq!(rows.len() as u64, MAX_ROWS + 1);
        assert_eq!(rows.last().unwrap().event_type, NODE_EVENTS_OMITTED);
        assert_eq!(rows[0].content, json!({"nodeId": "a"}));
    }
}
