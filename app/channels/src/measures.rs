//! Metrics of channels.

use deerflow_domain::channels::InboxState;
use metrics::{counter, gauge, histogram};
use tokio::time::Instant;

use crate::platform::PlatformError;

/// Work of an account that waits.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Backlog {
    /// Messages in the inbox.
    pub(crate) inbox: u64,
    /// Age of the oldest of them in seconds.
    pub(crate) age: f64,
    /// Messages in the outbox.
    pub(crate) outbox: u64,
}

/// Records whether this node serves a channel.
pub(crate) fn connected(channel: &str, is_connected: bool) {
    let value = if is_connected { 1.0 } else { 0.0 };
    gauge!("deerflow_channel_connected", "channel" => channel.to_owned()).set(value);
}

/// Counts a reconnection.
pub(crate) fn reconnecting(channel: &str) {
    counter!("deerflow_channel_reconnects_total", "channel" => channel.to_owned()).increment(1);
}

/// Counts a failed call if the platform refused it because of a rate limit.
pub(crate) fn failed(channel: &'static str, error: &PlatformError) {
    if matches!(error, PlatformError::RateLimited { .. }) {
        counter!("deerflow_channel_rate_limited_total", "channel" => channel).increment(1);
    }
}

/// Records the waiting work of the served account.
pub(crate) fn backlog(channel: &'static str, backlog: Backlog) {
    #[expect(clippy::cast_precision_loss, reason = "gauges are floating point")]
    let (inbox, outbox) = (backlog.inbox as f64, backlog.outbox as f64);
    gauge!("deerflow_channel_inbox_waiting", "channel" => channel).set(inbox);
    gauge!("deerflow_channel_inbox_age_seconds", "channel" => channel).set(backlog.age);
    gauge!("deerflow_channel_outbox_pending", "channel" => channel).set(outbox);
}

/// Records the time until received events were stored, which their acknowledgement follows.
pub(crate) fn accepted(channel: &'static str, since: Instant) {
    histogram!("deerflow_channel_accept_seconds", "channel" => channel).record(since.elapsed());
}

/// Counts messages that ended.
pub(crate) fn ended(channel: &'static str, outcome: InboxState, count: usize) {
    counter!(
        "deerflow_channel_messages_total",
        "channel" => channel,
        "outcome" => outcome.as_str()
    )
    .increment(count as u64);
}
