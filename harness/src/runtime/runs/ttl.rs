//! How long threads stay, and what becomes of them then.

use chrono::TimeDelta;

/// How long a thread stays as it is after its last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadTtl {
    /// The time after its last change.
    pub after: TimeDelta,
    /// What becomes of it then.
    pub then: Expiry,
}

/// What becomes of a thread whose time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expiry {
    /// It goes, with all it holds.
    #[default]
    Delete,
    /// It stays with its newest state; the older ones go.
    KeepLatest,
}

impl Expiry {
    /// All of them by their names.
    pub const WORDS: &'static [(&'static str, Self)] =
        &[("delete", Self::Delete), ("keep_latest", Self::KeepLatest)];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::KeepLatest => "keep_latest",
        }
    }
}
