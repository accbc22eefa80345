//! Signs on the platform. They wait for nothing, nothing waits for them, and failures are only logged.

use std::sync::Arc;

use harness::runtime::tasks::TaskKind;
use tokio::time::Instant;

use super::closed_lanes::close_lane;
use super::context::Bot;
use crate::platform::{Receipt, Target};

/// Begins to show a sign, unless the rates leave no call for it.
pub(crate) fn show(bot: &Arc<Bot>, target: &Target, receipt: Receipt) {
    let chat = &target.chat.id;
    if !bot.is_serving() {
        return;
    }
    let Some(permit) = bot.pacing.take_sign(chat, Instant::now()) else {
        return;
    };
    let (bot, target) = (bot.clone(), target.clone());
    let tasks = bot.hub.tasks.clone();
    tasks.spawn(TaskKind::Service, "sign", async move {
        let shown = tokio::select! {
            shown = bot.platform.show(&target, receipt) => shown,
            () = bot.stop.cancelled() => return,
        };
        drop(permit);
        if let Err(error) = shown {
            close_lane(&bot, &target.chat.id, &error).await;
            tracing::debug!(%error, account = %bot.claim.account, ?receipt, "a sign was not shown");
        }
    });
}
