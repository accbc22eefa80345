//! Mode of the turns of a node.

use serde::{Deserialize, Serialize};

/// Mode of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TurnMode {
    /// Does work.
    #[default]
    Normal,
    /// Makes a plan.
    Plan,
    /// Evaluates work.
    Evaluate,
}

impl TurnMode {
    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Plan => "plan",
            Self::Evaluate => "evaluate",
        }
    }
}
