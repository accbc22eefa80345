//! Conditions of edges: comparisons of values of the run. No arithmetic, no calls out of the run.

mod condition;

pub use condition::{Condition, Root, Scope};
