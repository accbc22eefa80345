//! Abilities of the platform in memory.

use std::time::Duration;

use super::memory::MemoryPlatform;
use crate::markup::Dialect;
use crate::platform::{
    Abilities, FileLimits, GroupConversations, LengthUnit, LivePacing, Rates, TextLimit,
};

impl Default for MemoryPlatform {
    fn default() -> Self {
        Self::new(Abilities {
            dialect: Dialect::Plain,
            text: TextLimit {
                unit: LengthUnit::Utf16,
                max: 4_096,
            },
            live: Some(LivePacing {
                direct: Duration::from_millis(1),
                group: Duration::from_millis(1),
                keep_alive: None,
            }),
            rates: Rates {
                account_per_second: 100_000,
                chat_interval: Duration::ZERO,
                group_per_minute: None,
                counts_signs: true,
            },
            files: Some(FileLimits {
                receive: 1_000_000,
                send: 1_000_000,
            }),
            buttons: true,
            typing: None,
            groups: GroupConversations::ReplyChain,
            needs_connection: false,
            redelivers: true,
        })
    }
}
