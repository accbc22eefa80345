//! Lanes that a refusal of the platform closes, also across a change of the process.

use std::time::Duration;

use chrono::TimeDelta;
use deerflow_domain::channels::{ChannelStoreError, ClosedLane};
use tokio::time::Instant;

use super::context::Bot;
use crate::platform::PlatformError;

/// Maximum delay that a platform may impose.
pub(crate) const MAX_RATE_DELAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Permits no call for a chat, or for the account, for the delay that an error of the platform
/// names. Other errors have no effect.
pub(crate) async fn close_lane(bot: &Bot, chat: &str, error: &PlatformError) {
    let PlatformError::RateLimited {
        retry_after,
        account,
    } = error
    else {
        return;
    };
    let delay = (*retry_after).min(MAX_RATE_DELAY);
    let until = Instant::now() + delay;
    if *account {
        bot.pacing.close_account(until);
    } else {
        bot.pacing.close_chat(chat, until);
    }
    let lane = ClosedLane {
        chat: (!account).then(|| chat.to_owned()),
        until: bot.hub.clock.now() + TimeDelta::from_std(delay).unwrap_or_default(),
    };
    let outbox = &bot.hub.stores.outbox;
    if let Err(error) = outbox.close_lane(&bot.claim, &lane).await {
        bot.check_fence(&error);
        tracing::warn!(%error, account = %bot.claim.account, "a closed lane was not stored");
    }
}

/// Closes the lanes that an earlier holder of the account found closed.
pub(crate) async fn restore_lanes(bot: &Bot) -> Result<(), ChannelStoreError> {
    let now = bot.hub.clock.now();
    let outbox = &bot.hub.stores.outbox;
    for lane in outbox.closed_lanes(&bot.claim.account, now).await? {
        // A clock that was wrong must not close a lane for longer.
        let delay = (lane.until - now).to_std().unwrap_or_default();
        let until = Instant::now() + delay.min(MAX_RATE_DELAY);
        match &lane.chat {
            Some(chat) => bot.pacing.close_chat(chat, until),
            None => bot.pacing.close_account(until),
        }
    }
    Ok(())
}
