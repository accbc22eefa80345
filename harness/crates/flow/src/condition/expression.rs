//! Syntax tree of a condition.

use serde_json::Value;

use super::scope::Root;

/// Expression with a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    /// True if one of them is.
    Any(Vec<Expression>),
    /// True if all of them are.
    All(Vec<Expression>),
    /// True if it is not.
    Not(Box<Expression>),
    /// Comparison of two values.
    Compare(Comparison, Box<Expression>, Box<Expression>),
    /// Constant.
    Literal(Value),
    /// Value at a path.
    Path(Root, Vec<Segment>),
    /// `true` if a text contains a text, a list a value or an object a key.
    Contains(Box<Expression>, Box<Expression>),
    /// `true` if a value is not null.
    Exists(Box<Expression>),
    /// Characters of a text, items of a list or keys of an object; 0 for other values.
    Len(Box<Expression>),
}

/// Operator of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Step of a path: a key of an object, or an index of a list if it is a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) key: String,
    pub(super) index: Option<usize>,
}

impl Segment {
    pub(super) fn new(key: String) -> Self {
        let index = key.parse().ok();
        Self { key, index }
    }
}
