//! What a middleware did that an audit looks for.

use serde_json::Value;

/// Something that a middleware did about calls that a model made; for the journal, where its row is `middleware:<tag>`.
#[derive(Debug, Clone, PartialEq)]
pub struct MiddlewareAction {
    /// What kind of deed it is, such as `guardrail`; at most 21 characters.
    pub tag: &'static str,
    /// The middleware.
    pub name: String,
    /// The hook that it did it in, such as `wrap_tool_call`.
    pub hook: &'static str,
    /// What it did, such as `deny_tool_call`.
    pub action: &'static str,
    /// To what, and why.
    pub changes: Value,
}
