//! Makes a log the publisher of its run. New events are numbered after those that the server and
//! the durable log have.

use deerflow_runtime::stream_bridge::LogOutline;
use tokio::time::Instant;

use super::presence::Presence;
use super::publisher::Publisher;
use super::spill_state::SpillState;
use super::stream_head::StreamHead;
use super::stream_state::StreamState;

impl StreamState {
    pub(super) fn become_publisher(
        &mut self,
        attempt: u32,
        known: Option<StreamHead>,
        logged: &LogOutline,
    ) {
        self.changed_at = Instant::now();
        if let Some(publisher) = &mut self.publisher {
            if known
                .as_ref()
                .is_none_or(|head| head.tail.max(logged.tail()) <= self.head.tail)
            {
                // Events that the lower attempt published on this node are sent first.
                publisher.attempt = publisher.attempt.max(attempt);
                return;
            }
            self.generation += 1;
        }
        let claimed = known.is_some();
        let mut acked = self.head.tail;
        if let Some(head) = known {
            acked = head.tail;
            let head = head.with(logged);
            // Viewers that saw more than the stream still has must reconnect.
            self.generation += u32::from(!head.continues(&self.head));
            self.adopt(head);
        }
        self.presence = Presence::Present;
        self.publisher = Some(Publisher::of(
            attempt,
            claimed,
            acked,
            SpillState::at(self.durable_log.has_log(), &self.head),
        ));
    }

    /// Applies the server's reply to a claim: renumbers unsent events after the stream's tail.
    pub(super) fn resolve(&mut self, head: StreamHead, logged: &LogOutline) {
        let Some(publisher) = &mut self.publisher else {
            return;
        };
        publisher.claimed = true;
        let acked = head.tail;
        let head = if publisher.spilling.logged > 0 {
            head
        } else {
            head.with(logged)
        };
        if head.tail <= publisher.acked {
            publisher.acked = acked;
            return;
        }
        tracing::warn!(
            tail = head.tail,
            "the stream had more events than this node knew while redis was unavailable"
        );
        let known = std::mem::replace(&mut publisher.acked, acked);
        publisher.spilling = SpillState::at(self.durable_log.has_log(), &head);
        while self
            .entries
            .front()
            .is_some_and(|entry| entry.event.id.seq <= known)
        {
            self.drop_oldest();
        }
        self.generation += 1;
        self.head = head;
        for entry in &mut self.entries {
            entry.event.id = self.head.append(entry.event.id.attempt);
        }
    }
}
