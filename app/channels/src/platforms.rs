//! The platforms of this build.

use std::sync::Arc;

use crate::platform::PlatformFactory;
use crate::slack::SlackFactory;
use crate::telegram::TelegramFactory;

/// Returns all platforms in the order of the settings page.
pub fn platforms() -> Vec<Arc<dyn PlatformFactory>> {
    vec![Arc::new(TelegramFactory), Arc::new(SlackFactory)]
}
