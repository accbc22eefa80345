//! From the `guardrails` section to a policy.

use std::sync::Arc;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::allowlist::AllowlistPolicy;
use super::policy::{Decision, GuardrailPolicy, GuardrailRequest, PolicyError};
use super::rules::RulePolicy;
use crate::config::GuardrailProviderConfig;

/// A policy that could not be made: every question to it is an error that says why.
#[derive(Debug, Clone)]
pub struct BrokenPolicy(pub String);

#[async_trait]
impl GuardrailPolicy for BrokenPolicy {
    async fn evaluate(&self, _request: &GuardrailRequest<'_>) -> Result<Decision, PolicyError> {
        Err(PolicyError(self.0.clone()))
    }
}

/// The policy that a configuration names; a broken one where it names none, or none that this build has.
pub fn policy_of(provider: Option<&GuardrailProviderConfig>) -> Arc<dyn GuardrailPolicy> {
    let Some(provider) = provider else { return broken("guardrails.provider is absent".to_owned()) };
    // Older configurations name a class: `package.module:AllowlistProvider`.
    let kind = provider.kind.rsplit([':', '.']).next().unwrap_or_default().to_ascii_lowercase();
    match kind.trim_end_matches("provider").trim_end_matches("policy") {
        "allowlist" => made::<AllowlistPolicy>(provider),
        "rules" | "rule" => made::<RulePolicy>(provider),
        _ => broken(format!("guardrails.provider.use {:?} is none of: allowlist, rules", provider.kind)),
    }
}

/// Where nothing is said, nothing was meant: the keys stand in the wrong place.
fn made<P: GuardrailPolicy + DeserializeOwned + 'static>(provider: &GuardrailProviderConfig) -> Arc<dyn GuardrailPolicy> {
    if provider.config.is_empty() {
        return broken("guardrails.provider.config says nothing".to_owned());
    }
    match serde_path_to_error::deserialize::<_, P>(Value::Object((*provider.config).clone())) {
        Ok(policy) => Arc::new(policy),
        Err(error) => broken(format!("guardrails.provider.config cannot be read: {error}")),
    }
}

fn broken(why: String) -> Arc<dyn GuardrailPolicy> {
    tracing::error!(%why, "the guardrails cannot decide anything");
    Arc::new(BrokenPolicy(why))
}
