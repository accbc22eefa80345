//! The values that conditions read.

use std::borrow::Cow;

use serde_json::Value;

/// Value that a path begins at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// `input`: the input of the run.
    Input,
    /// `nodes.<id>.<port>`: the value of an output port.
    Port {
        /// Node.
        node: String,
        /// Output port.
        port: String,
    },
    /// `last.text`: the final text of the node that the edge leaves.
    LastText,
    /// `last.structured`: the structured output of the node that the edge leaves.
    LastStructured,
    /// `loop.<id>`: the round of a loop node.
    Round(String),
}

/// Values that a condition reads.
pub trait Scope {
    /// Returns the value of a root. `None` if there is none; the condition then reads null.
    fn value(&self, root: &Root) -> Option<Cow<'_, Value>>;
}
