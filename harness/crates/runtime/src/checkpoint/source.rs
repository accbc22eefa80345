//! Origin of a checkpoint.

use serde::{Deserialize, Serialize};

/// Source of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckpointSource {
    /// Input of a run.
    Input,
    /// Step of a run.
    Loop,
    /// Update from outside a run.
    Update,
    /// Copy of an older checkpoint.
    Fork,
}
