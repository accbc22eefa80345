//! Conditions of edges: comparisons of values of the run. No arithmetic, no calls out of the run.

mod evaluate;
mod expression;
mod parsed;
mod parser;

pub use parsed::{Condition, ConditionError, MAX_CHARS, MAX_DEPTH, Root, Scope};

#[cfg(test)]
mod condition_tests;
