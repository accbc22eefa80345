//! Status of one channel in this process.

use std::sync::Arc;

use deerflow_domain::channels::{ChannelState, ChannelStatus};
use harness::clock::Clock;
use tokio::sync::watch;

use crate::measures;
use crate::platform::Identity;

/// Status that tasks change and others read.
#[derive(Debug)]
pub(crate) struct StatusCell {
    status: watch::Sender<ChannelStatus>,
    clock: Arc<dyn Clock>,
}

impl StatusCell {
    pub(crate) fn new(status: ChannelStatus, clock: Arc<dyn Clock>) -> Self {
        Self {
            status: watch::Sender::new(status),
            clock,
        }
    }

    /// Returns the status.
    pub(crate) fn get(&self) -> ChannelStatus {
        self.status.borrow().clone()
    }

    /// Subscribes to changes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<ChannelStatus> {
        self.status.subscribe()
    }

    /// Changes the configured facts.
    pub(crate) fn configure(&self, enabled: bool, configured: bool) {
        self.status
            .send_modify(|status| (status.enabled, status.configured) = (enabled, configured));
    }

    /// Changes the state.
    pub(crate) fn set(&self, state: ChannelState) {
        let now = self.clock.now();
        self.status.send_if_modified(|status| {
            let is_new = status.state != state;
            if is_new {
                tracing::info!(channel = %status.provider, ?state, "channel state changed");
                measures::connected(&status.provider, state == ChannelState::Connected);
                (status.state, status.since) = (state, now);
            }
            is_new
        });
    }

    /// Records the bot.
    pub(crate) fn identified(&self, identity: &Identity) {
        self.status.send_modify(|status| {
            status.account = Some(identity.account.clone());
            status.bot_name = Some(identity.name.clone());
        });
    }

    /// Records an established connection.
    pub(crate) fn connected(&self) {
        self.set(ChannelState::Connected);
    }

    /// Counts a reconnection.
    pub(crate) fn reconnecting(&self) {
        measures::reconnecting(&self.status.borrow().provider);
    }
}
