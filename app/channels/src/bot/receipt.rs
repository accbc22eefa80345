//! Signs on the platform, whose failures are only logged.

use tokio::time::Instant;

use super::closed_lanes::close_lane;
use super::context::Bot;
use crate::platform::{Receipt, Target};

/// Shows a sign, unless the platform has refused calls for the chat.
pub(crate) async fn show(bot: &Bot, target: &Target, receipt: Receipt) {
    let chat = &target.chat.id;
    if bot.pacing.is_closed(chat, Instant::now()) {
        return;
    }
    let Err(error) = bot.platform.show(target, receipt).await else {
        return;
    };
    close_lane(bot, chat, &error).await;
    tracing::debug!(%error, account = %bot.claim.account, ?receipt, "a sign was not shown");
}
