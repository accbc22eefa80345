//! State that the routes of the fake share.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;

use super::deliveries::Deliveries;
use crate::common::{Calls, Faults, Window};

/// Valid client id, which is also the code of the robot.
pub const CLIENT_ID: &str = "client";
/// Valid client secret.
pub const CLIENT_SECRET: &str = "secret";
/// Staff id of a person.
pub const STAFF: &str = "u1";
/// Conversation id of a group.
pub const GROUP: &str = "cid-group";
/// Id of a card template that exists.
pub const TEMPLATE: &str = "template.schema";

/// Options of the fake.
#[derive(Debug, Clone)]
pub struct DingTalkOptions {
    /// Port; 0 selects a free one.
    pub port: u16,
    /// Time after which an unacknowledged message is delivered again.
    pub redelivery: Duration,
    /// Lifetime of tokens in seconds.
    pub token_seconds: u64,
    /// `true` to enforce rate limits.
    pub rate_limits: bool,
}

impl Default for DingTalkOptions {
    fn default() -> Self {
        Self {
            port: 0,
            redelivery: Duration::from_secs(10),
            token_seconds: 7200,
            rate_limits: true,
        }
    }
}

/// Card.
#[derive(Debug, Clone, Default)]
pub(super) struct Card {
    pub(super) space: String,
    pub(super) content: String,
    pub(super) is_final: bool,
    pub(super) guids: HashSet<String>,
}

/// Message that the robot sent.
#[derive(Debug, Clone)]
pub(super) struct SentMessage {
    pub(super) to: String,
    pub(super) key: String,
    pub(super) parameters: Value,
}

/// State of the fake.
#[derive(Debug)]
pub(super) struct DingTalkShared {
    pub(super) options: DingTalkOptions,
    pub(super) address: SocketAddr,
    pub(super) calls: Calls,
    pub(super) faults: Faults,
    pub(super) deliveries: Mutex<Deliveries>,
    pub(super) tokens: Mutex<HashSet<String>>,
    pub(super) tickets: Mutex<HashSet<String>>,
    pub(super) sent: Mutex<Vec<SentMessage>>,
    pub(super) cards: Mutex<BTreeMap<String, Card>>,
    pub(super) files: Mutex<HashMap<String, Vec<u8>>>,
    pub(super) windows: Mutex<HashMap<String, Window>>,
    given: AtomicU64,
}

impl DingTalkShared {
    /// Creates the state of a server at an address.
    pub(super) fn new(options: DingTalkOptions, address: SocketAddr) -> Self {
        Self {
            options,
            address,
            calls: Calls::default(),
            faults: Faults::default(),
            deliveries: Mutex::default(),
            tokens: Mutex::default(),
            tickets: Mutex::default(),
            sent: Mutex::default(),
            cards: Mutex::default(),
            files: Mutex::default(),
            windows: Mutex::default(),
            given: AtomicU64::new(0),
        }
    }

    /// Returns a new number.
    pub(super) fn number(&self) -> u64 {
        self.given.fetch_add(1, Ordering::SeqCst) + 1
    }
}
