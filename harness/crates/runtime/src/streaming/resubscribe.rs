//! Subscribes to the stream of a run, with retries while the bridge is unavailable.

use std::time::Duration;

use tokio::time::Instant;

use crate::kernel::{RunError, StatusPoller};
use crate::stream_bridge::{BridgeError, ResumeFrom, StreamBridge, Subscription};

/// Timeout and interval of subscription retries for a run that has ended.
pub(crate) const RESUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(10);
const RESUBSCRIBE_INTERVAL: Duration = Duration::from_secs(1);

/// Subscribes to the bridge's stream of a run. If the bridge is unavailable, clients of an active
/// run receive the error and reconnect later. Clients of an ended run would not reconnect, so the
/// subscription to its past events is retried.
pub(crate) async fn subscribe_with_retry(
    poller: &StatusPoller,
    from: ResumeFrom,
    heartbeat: Duration,
    bridge: &dyn StreamBridge,
) -> Result<Subscription, RunError> {
    let back_by = Instant::now() + RESUBSCRIBE_TIMEOUT;
    loop {
        match bridge.subscribe(poller.run_id(), from, heartbeat).await {
            Err(BridgeError::Transport(_))
                if from != ResumeFrom::Tail
                    && Instant::now() < back_by
                    && is_over(poller).await? =>
            {
                tokio::time::sleep(RESUBSCRIBE_INTERVAL).await;
            }
            result => return Ok(result?),
        }
    }
}

/// Reports whether the run has ended or was deleted.
async fn is_over(poller: &StatusPoller) -> Result<bool, RunError> {
    Ok(poller
        .cached_within(RESUBSCRIBE_INTERVAL)
        .await?
        .is_none_or(|now| now.status.is_terminal()))
}
