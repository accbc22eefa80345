//! Policy with a list of allowed tools and a list of denied tools.

use async_trait::async_trait;
use serde::Deserialize;

use super::policy::{Decision, GuardrailPolicy, GuardrailRequest, PolicyError};

/// Reason code for a tool that is not allowed.
const NOT_ALLOWED: &str = "oap.tool_not_allowed";

/// Decides by the tool's name alone. A denied tool is denied even if it is also allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AllowlistPolicy {
    /// The only tools that may be called; null for any.
    pub allowed_tools: Option<Vec<String>>,
    /// Tools that may not be called.
    pub denied_tools: Vec<String>,
}

#[async_trait]
impl GuardrailPolicy for AllowlistPolicy {
    async fn evaluate(&self, request: &GuardrailRequest<'_>) -> Result<Decision, PolicyError> {
        let named = |tools: &[String]| tools.iter().any(|tool| tool == request.tool_name);
        if named(&self.denied_tools) {
            return Ok(Decision::deny(
                NOT_ALLOWED,
                "the tool is on the list of denied tools",
            ));
        }
        match &self.allowed_tools {
            Some(allowed) if !named(allowed) => Ok(Decision::deny(
                NOT_ALLOWED,
                "the tool is not on the list of allowed tools",
            )),
            _ => Ok(Decision::allow()),
        }
    }
}
