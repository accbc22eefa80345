//! Reasons why runs stopped early.

use std::fmt;
use std::sync::Arc;

/// Reason why a run stopped early. Stored and sent as its text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The process of the run died and the run was not resumed, or a claimed run could not be
    /// started.
    OrphanRecovered,
    /// The run was cancelled and rolled back.
    RolledBack,
    /// The process of a run with durability `exit` died.
    NodeLost,
    /// The processes of the run died, or were blocked by it, repeatedly.
    AttemptsExhausted,
    /// The store is full.
    StorageFull,
    /// The stored run cannot be read.
    Unreadable,
    /// Reason of an agent, such as `loop_capped`, or of a later version.
    Other(Arc<str>),
}

impl StopReason {
    /// Reasons that the kernel and its stores record.
    const KNOWN: [Self; 6] = [
        Self::OrphanRecovered,
        Self::RolledBack,
        Self::NodeLost,
        Self::AttemptsExhausted,
        Self::StorageFull,
        Self::Unreadable,
    ];

    /// Returns the text on the wire and in the store.
    pub fn as_str(&self) -> &str {
        match self {
            Self::OrphanRecovered => "orphan_recovered",
            Self::RolledBack => "rolled_back",
            Self::NodeLost => "node_lost",
            Self::AttemptsExhausted => "attempts_exhausted",
            Self::StorageFull => "storage_full",
            Self::Unreadable => "unreadable",
            Self::Other(text) => text,
        }
    }
}

impl From<&str> for StopReason {
    fn from(text: &str) -> Self {
        Self::KNOWN
            .into_iter()
            .find(|reason| reason.as_str() == text)
            .unwrap_or_else(|| Self::Other(text.into()))
    }
}

impl From<String> for StopReason {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<StopReason> for String {
    fn from(reason: StopReason) -> Self {
        reason.as_str().to_owned()
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// Former constants, for crates that were written against them.
#[doc(hidden)]
pub const ORPHAN_RECOVERED: &str = "orphan_recovered";
#[doc(hidden)]
pub const ROLLED_BACK: &str = "rolled_back";
#[doc(hidden)]
pub const NODE_LOST: &str = "node_lost";
#[doc(hidden)]
pub const ATTEMPTS_EXHAUSTED: &str = "attempts_exhausted";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_stop_reasons_roundtrip() {
        for reason in StopReason::KNOWN {
            assert_eq!(StopReason::from(reason.as_str()), reason);
        }
        let other = StopReason::from("loop_capped");
        assert_eq!(other, StopReason::Other("loop_capped".into()));
        assert_eq!(String::from(other), "loop_capped");
    }

    #[test]
    fn former_constants_are_texts_of_reasons() {
        assert_eq!(StopReason::OrphanRecovered.as_str(), ORPHAN_RECOVERED);
        assert_eq!(StopReason::RolledBack.as_str(), ROLLED_BACK);
        assert_eq!(StopReason::NodeLost.as_str(), NODE_LOST);
        assert_eq!(StopReason::AttemptsExhausted.as_str(), ATTEMPTS_EXHAUSTED);
    }
}
