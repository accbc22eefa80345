//! State that the parts of the fake share.

use std::time::Instant;

use parking_lot::Mutex;

use super::limits::Limits;
use super::links::Links;
use super::options::SlackOptions;
use super::workspace::Workspace;
use crate::common::{Calls, Faults};

/// Shared parts.
#[derive(Debug)]
pub(super) struct Shared {
    /// Options; tests change some.
    pub(super) options: Mutex<SlackOptions>,
    /// HTTP base address.
    pub(super) base: String,
    /// Workspace.
    pub(super) workspace: Mutex<Workspace>,
    /// Open connections.
    pub(super) links: Links,
    /// Rate limits.
    pub(super) limits: Mutex<Limits>,
    /// Calls.
    pub(super) calls: Calls,
    /// Faults.
    pub(super) faults: Faults,
}

impl Shared {
    /// Returns the parts of a new fake.
    pub(super) fn new(options: SlackOptions, base: String) -> Self {
        Self {
            options: Mutex::new(options),
            base,
            workspace: Mutex::new(Workspace::new()),
            links: Links::default(),
            limits: Mutex::default(),
            calls: Calls::default(),
            faults: Faults::default(),
        }
    }

    /// Returns the current instant.
    pub(super) fn now(&self) -> Instant {
        Instant::now()
    }
}
