//! Conditions of edges: comparisons of values of the run. No arithmetic, no calls out of the run.

mod error;
mod evaluate;
mod expression;
mod parsed;
mod parser;
mod scope;

pub use error::{ConditionError, MAX_CHARS, MAX_DEPTH};
pub use parsed::Condition;
pub use scope::{Root, Scope};

#[cfg(test)]
mod condition_tests;
