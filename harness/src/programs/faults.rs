//! What a connection learns of its end, for whoever waits on it, and how much came on it that nobody asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use parking_lot::Mutex;

/// How much may come between two of our requests. Progress and log messages are fine, floods are not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    /// In bytes.
    pub(crate) bytes: usize,
    /// In messages.
    pub(crate) messages: u32,
}

impl Default for Allowance {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            messages: 10_000,
        }
    }
}

/// The first reason for which a connection was given up, and what leads to one. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    told: Arc<Mutex<Told>>,
    unasked: Arc<AtomicUsize>,
    messages: Arc<AtomicU32>,
    allowance: Allowance,
}

#[derive(Debug, Default)]
struct Told {
    reason: Option<String>,
    complaints: String,
}

impl Faults {
    /// None yet of a peer that may send so much.
    #[cfg(feature = "acp")]
    pub(crate) fn within(allowance: Allowance) -> Self {
        Self {
            allowance,
            ..Self::default()
        }
    }

    /// We have asked something: what comes now may be the answer.
    pub(crate) fn asked(&self) {
        self.unasked.store(0, Ordering::Relaxed);
        self.messages.store(0, Ordering::Relaxed);
    }

    /// Counts a message that came, or what was taken for one; `false` when they are too many.
    pub(crate) fn count_message(&self) -> bool {
        let most = self.allowance.messages;
        let is_fine = self.messages.fetch_add(1, Ordering::Relaxed) < most;
        if !is_fine {
            self.blame(format!(
                "it sent more than {most} messages that nobody asked for"
            ));
        }
        is_fine
    }

    /// Counts bytes that came; `false` when they are too many.
    pub(crate) fn count(&self, bytes: usize) -> bool {
        let most = self.allowance.bytes;
        let is_fine = self.unasked.fetch_add(bytes, Ordering::Relaxed) + bytes <= most;
        if !is_fine {
            self.blame(format!(
                "it wrote more than {} MiB that nobody asked for",
                most >> 20
            ));
        }
        is_fine
    }

    /// Remembers a reason, if it is the first.
    pub(crate) fn blame(&self, reason: impl Into<String>) {
        self.told.lock().reason.get_or_insert_with(|| reason.into());
    }

    /// Remembers what the process complained of last.
    pub(crate) fn complain(&self, text: String) {
        self.told.lock().complaints = text;
    }

    /// The reason, if there is one.
    pub(crate) fn reason(&self) -> Option<String> {
        self.told.lock().reason.clone()
    }

    /// What the process complained of last.
    pub(crate) fn complaints(&self) -> String {
        self.told.lock().complaints.clone()
    }
}
