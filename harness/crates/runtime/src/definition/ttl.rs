//! Lifetime of threads.

use chrono::TimeDelta;

/// Lifetime of a thread, and the action at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadTtl {
    /// Time since the thread's last change.
    pub after: TimeDelta,
    /// Action at the end of the lifetime.
    pub then: Expiry,
}

/// Action on an expired thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expiry {
    /// Deletes the thread with all of its data.
    #[default]
    Delete,
    /// Deletes all checkpoints but the newest.
    KeepLatest,
}

impl Expiry {
    /// All actions with their names.
    pub const WORDS: &'static [(&'static str, Self)] =
        &[("delete", Self::Delete), ("keep_latest", Self::KeepLatest)];

    /// Returns the name of the action.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::KeepLatest => "keep_latest",
        }
    }
}
