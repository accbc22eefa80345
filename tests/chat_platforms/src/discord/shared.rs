//! State that the routes of the fake share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::rooms::Rooms;
use super::sessions::Sessions;
use crate::common::{Calls, Faults, Window};

/// Options of the fake.
#[derive(Debug, Clone)]
pub struct DiscordOptions {
    /// Port; 0 selects a free one.
    pub port: u16,
    /// Valid bot token.
    pub token: String,
    /// `true` if the intent of message contents is switched on.
    pub message_content: bool,
    /// Interval of heartbeats.
    pub heartbeat: Duration,
    /// Remaining number of identifies.
    pub identifies: u32,
    /// `true` to enforce rate limits.
    pub rate_limits: bool,
}

impl Default for DiscordOptions {
    fn default() -> Self {
        Self {
            port: 0,
            token: "TOKEN".to_owned(),
            message_content: true,
            heartbeat: Duration::from_millis(41_250),
            identifies: 1000,
            rate_limits: true,
        }
    }
}

/// Interaction that waits for its callback.
#[derive(Debug)]
pub(super) struct Interaction {
    pub(super) token: String,
    pub(super) begun: Instant,
    pub(super) answered: bool,
}

/// State of the fake.
#[derive(Debug)]
pub(super) struct DiscordShared {
    pub(super) options: DiscordOptions,
    pub(super) address: std::net::SocketAddr,
    pub(super) calls: Calls,
    pub(super) faults: Faults,
    pub(super) rooms: Mutex<Rooms>,
    pub(super) sessions: Mutex<Sessions>,
    pub(super) interactions: Mutex<HashMap<u64, Interaction>>,
    pub(super) windows: Mutex<HashMap<String, Window>>,
    pub(super) violations: Mutex<Vec<String>>,
    pub(super) identifies: AtomicU32,
    /// Number of the last connection that sends nothing; 0 for none.
    pub(super) silent: AtomicU64,
}

impl DiscordShared {
    /// Creates the state of a server at an address.
    pub(super) fn new(options: DiscordOptions, address: std::net::SocketAddr) -> Self {
        Self {
            identifies: AtomicU32::new(options.identifies),
            options,
            address,
            calls: Calls::default(),
            faults: Faults::default(),
            rooms: Mutex::new(Rooms::new()),
            sessions: Mutex::default(),
            interactions: Mutex::default(),
            windows: Mutex::default(),
            violations: Mutex::default(),
            silent: AtomicU64::new(0),
        }
    }

    /// Returns the address of files.
    pub(super) fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the address of the gateway.
    pub(super) fn gateway(&self) -> String {
        format!("ws://{}/gateway", self.address)
    }

    /// Records behaviour that the platform tolerates and our rules forbid.
    pub(super) fn violation(&self, text: impl Into<String>) {
        self.violations.lock().push(text.into());
    }
}
