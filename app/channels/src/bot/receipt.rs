//! Signs on the platform, whose failures are only logged.

use super::context::Bot;
use crate::platform::{Receipt, Target};

/// Shows a sign.
pub(crate) async fn show(bot: &Bot, target: &Target, receipt: Receipt) {
    if let Err(error) = bot.platform.show(target, receipt).await {
        tracing::debug!(%error, account = %bot.claim.account, ?receipt, "a sign was not shown");
    }
}
