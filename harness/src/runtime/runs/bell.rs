//! The bell between processes that work on one store: what one has committed, others need not wait to find.

use futures_util::stream::BoxStream;

use crate::ids::RunId;

/// What was rung for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ring {
    /// This run was told to stop; its owner may be another process.
    Cancelled(RunId),
    /// A run waits that whoever is free may take.
    Waiting,
    /// This run is over: who waited for its thread may have its turn.
    Ended(RunId),
    /// Rings may have been missed: anything may have happened.
    Missed,
}

/// Tells other processes to look at the store now instead of soon. A ring is a hint and may be lost: everybody looks from time to
/// time, bell or no bell, and the store alone decides.
pub trait NodeBell: Send + Sync + std::fmt::Debug {
    /// Rings for what is committed. Returns at once and never fails.
    fn ring(&self, ring: Ring);

    /// What is rung from now on, here and elsewhere. It ends with the bell only; after a break it begins with [`Ring::Missed`].
    fn listen(&self) -> BoxStream<'static, Ring>;
}
