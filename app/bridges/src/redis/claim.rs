//! How a log becomes its run's owner: what it publishes is numbered after what the server and the durable log have.

use harness::runtime::stream_bridge::LogOutline;
use tokio::time::Instant;

use super::log::State;
use super::outline::Outline;
use super::owner::Owner;
use super::spill::Spilling;

impl State {
    pub(super) fn own(&mut self, attempt: u32, known: Option<Outline>, logged: &LogOutline) {
        self.changed_at = Instant::now();
        if let Some(owner) = &mut self.owner {
            if known
                .as_ref()
                .is_none_or(|outline| outline.tail.max(logged.tail()) <= self.outline.tail)
            {
                // What the lower attempt published here goes on its way first.
                owner.attempt = owner.attempt.max(attempt);
                return;
            }
            self.generation += 1;
        }
        let claimed = known.is_some();
        let mut acked = self.outline.tail;
        if let Some(outline) = known {
            acked = outline.tail;
            let outline = outline.with(logged);
            // Who saw more than is left of the stream comes back.
            self.generation += u32::from(!outline.continues(&self.outline));
            self.adopt(outline);
        }
        self.gone = false;
        self.lost_since = None;
        self.owner = Some(Owner::of(
            attempt,
            claimed,
            acked,
            Spilling::beside(self.durable, &self.outline),
        ));
    }

    /// The server has said where an unclaimed stream stands: what waits is numbered after that.
    pub(super) fn resolve(&mut self, outline: Outline, logged: &LogOutline) {
        let Some(owner) = &mut self.owner else { return };
        owner.claimed = true;
        let acked = outline.tail;
        let outline = if owner.spilling.logged > 0 {
            outline
        } else {
            outline.with(logged)
        };
        if outline.tail <= owner.acked {
            owner.acked = acked;
            return;
        }
        tracing::warn!(
            tail = outline.tail,
            "the stream had more events than was known while the server was out of order"
        );
        let known = std::mem::replace(&mut owner.acked, acked);
        owner.spilling = Spilling::beside(self.durable, &outline);
        while self
            .entries
            .front()
            .is_some_and(|entry| entry.event.id.seq <= known)
        {
            self.drop_oldest();
        }
        self.generation += 1;
        self.outline = outline;
        for entry in &mut self.entries {
            entry.event.id = self.outline.append(entry.event.id.attempt);
        }
    }
}
