//! State that routes and tasks of the fake share.

use std::time::Instant;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::line::{FeishuLine, Outbound};
use super::options::FeishuOptions;
use super::world::{FeishuMessage, FeishuWorld};
use crate::common::{Calls, Faults};

/// State that routes and tasks share.
#[derive(Debug)]
pub(super) struct FeishuShared {
    pub(super) options: FeishuOptions,
    pub(super) socket_base: String,
    pub(super) world: Mutex<FeishuWorld>,
    pub(super) line: Mutex<FeishuLine>,
    pub(super) calls: Calls,
    pub(super) faults: Faults,
    /// Wakes the delivery of events.
    pub(super) wake: Notify,
    /// Number of changes.
    pub(super) changes: watch::Sender<u64>,
    pub(super) stop: CancellationToken,
}

impl FeishuShared {
    pub(super) fn change(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }
}

impl FeishuShared {
    pub(super) fn messages(&self) -> Vec<FeishuMessage> {
        let world = self.world.lock();
        world
            .order
            .iter()
            .filter_map(|id| world.messages.get(id).cloned())
            .collect()
    }

    pub(super) fn push(&self, id: String, kind: &str, payload: Vec<u8>) {
        self.line.lock().push(id, kind, payload, Instant::now());
        self.wake.notify_one();
    }

    pub(super) fn end(&self, cut: bool) {
        for connection in &self.line.lock().connections {
            let message = if cut { Outbound::Cut } else { Outbound::Close };
            let _ = connection.sender.send(message);
        }
    }

    /// Returns the state of the connections.
    pub(super) fn status(&self) -> Value {
        let line = self.line.lock();
        json!({
            "connections": line.connections.len(), "opened": line.opened, "acks": line.acks,
            "unacknowledged": line.unacknowledged(), "violations": line.violations,
            "closes": line.closes,
        })
    }
}
