//! Stop reasons that the run kernel records.

/// Stop reason of a run whose process died.
pub const ORPHAN_RECOVERED: &str = "orphan_recovered";

/// Stop reason of a run that was rolled back.
pub const ROLLED_BACK: &str = "rolled_back";

/// Stop reason of a run with durability `exit` whose process died.
pub const NODE_LOST: &str = "node_lost";

/// Stop reason of a run whose processes died repeatedly.
pub const ATTEMPTS_EXHAUSTED: &str = "attempts_exhausted";
