//! A parsed condition.

use super::error::{ConditionError, MAX_CHARS};
use super::evaluate::{evaluate, is_truthy};
use super::expression::Expression;
use super::parser::Parser;
use super::scope::Scope;

/// A parsed condition.
///
/// Operators from loose to tight: `||`, `&&`, `!`, then one of `== != < <= > >=`, which do not
/// chain. Operands are parentheses, numbers, texts in either quote without escapes, `true`,
/// `false`, `null`, `contains(a, b)`, `exists(a)`, `len(a)` and paths that begin at a [`Root`](super::Root).
/// Below a root a path names keys of objects and indices of lists; `['a b']` names a key that is
/// no word.
///
/// Null, false, 0 and empty texts, lists and objects count as false. A missing value is null.
/// Values of unlike types are unequal, and an ordering comparison of them is false.
///
/// ```
/// use std::borrow::Cow;
/// use deerflow_flow::condition::{Condition, Root, Scope};
/// use serde_json::{Value, json};
///
/// struct Input(Value);
/// impl Scope for Input {
///     fn value(&self, root: &Root) -> Option<Cow<'_, Value>> {
///         (*root == Root::Input).then_some(Cow::Borrowed(&self.0))
///     }
/// }
///
/// let condition = Condition::parse("input.topic == 'rust' && len(input.tags) >= 2")?;
/// assert!(condition.is_true(&Input(json!({"topic": "rust", "tags": ["a", "b"]}))));
/// assert!(!condition.is_true(&Input(json!({"topic": "rust"}))));
///
/// let error = Condition::parse("input.topic = 'rust'").unwrap_err();
/// assert_eq!(error.offset, 12);
/// # Ok::<(), deerflow_flow::condition::ConditionError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Condition(Expression);

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    /// The first place at which the text is not a condition, and what would be right there.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        if let Some((offset, _)) = text.char_indices().nth(MAX_CHARS) {
            return Err(ConditionError {
                offset,
                expected: format!(
                    "the end, because a condition has at most {MAX_CHARS} characters"
                ),
            });
        }
        Parser::new(text).condition().map(Self)
    }

    /// Returns `true` if the condition holds for the values of `scope`.
    pub fn is_true(&self, scope: &dyn Scope) -> bool {
        is_truthy(&evaluate(&self.0, scope))
    }
}
