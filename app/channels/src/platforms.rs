//! The platforms of this build.

use std::sync::Arc;

use crate::dingtalk::DingTalkFactory;
use crate::discord::DiscordFactory;
use crate::feishu::FeishuFactory;
use crate::platform::PlatformFactory;
use crate::slack::SlackFactory;
use crate::telegram::TelegramFactory;
use crate::wecom::WeComFactory;

/// Returns all platforms in the order of the settings page.
pub fn platforms() -> Vec<Arc<dyn PlatformFactory>> {
    vec![
        Arc::new(TelegramFactory),
        Arc::new(SlackFactory),
        Arc::new(DiscordFactory),
        Arc::new(FeishuFactory),
        Arc::new(DingTalkFactory),
        Arc::new(WeComFactory),
    ]
}
