//! Asks the bridge for the stream of a run, again and again while what it does not answer would be the last word.

use std::time::Duration;

use tokio::time::Instant;

use super::error::RunError;
use super::looks::RunLook;
use crate::runtime::stream_bridge::{BridgeError, ResumeFrom, StreamBridge, Subscription};

/// How long, and how often, a bridge that is away is asked again for a run that is over.
pub(super) const AWAY_LIMIT: Duration = Duration::from_secs(10);
const AWAY_LOOK: Duration = Duration::from_secs(1);

/// The bridge's stream of a run. Who is sent away from an active run comes back later; one that is over is told for good, and who
/// wants of it what was before waits for a bridge that is away.
pub(super) async fn subscribe_to(
    look: &RunLook,
    from: ResumeFrom,
    heartbeat: Duration,
    bridge: &dyn StreamBridge,
) -> Result<Subscription, RunError> {
    let back_by = Instant::now() + AWAY_LIMIT;
    loop {
        match bridge.subscribe(look.run_id(), from, heartbeat).await {
            Err(BridgeError::Transport(_))
                if from != ResumeFrom::Tail
                    && Instant::now() < back_by
                    && is_over(look).await? =>
            {
                tokio::time::sleep(AWAY_LOOK).await;
            }
            asked => return Ok(asked?),
        }
    }
}

/// Whether a run is over by now, or gone.
async fn is_over(look: &RunLook) -> Result<bool, RunError> {
    Ok(look
        .within(AWAY_LOOK)
        .await?
        .is_none_or(|now| now.status.is_terminal()))
}
