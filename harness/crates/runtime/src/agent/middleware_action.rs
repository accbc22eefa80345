//! Actions of middlewares that are recorded for audits.

use serde_json::Value;

/// Action of a middleware on the calls of a model; stored in the journal as `middleware:<tag>`.
#[derive(Debug, Clone, PartialEq)]
pub struct MiddlewareAction {
    /// Kind of the action, such as `guardrail`; at most 21 characters.
    pub tag: &'static str,
    /// Name of the middleware.
    pub name: String,
    /// Hook that performed it, such as `wrap_tool_call`.
    pub hook: &'static str,
    /// Action, such as `deny_tool_call`.
    pub action: &'static str,
    /// Affected calls, and the reason.
    pub changes: Value,
}
