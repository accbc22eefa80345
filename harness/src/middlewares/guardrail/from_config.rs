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
    let made = provider
        .ok_or_else(|| "guardrails.provider is absent".to_owned())
        .and_then(made);
    made.unwrap_or_else(|why| {
        tracing::error!(%why, "the guardrails cannot decide anything");
        Arc::new(BrokenPolicy(why))
    })
}

/// Why a provider cannot decide anything, if it cannot. The rules in a file that it names are not read.
pub fn policy_fault(provider: &GuardrailProviderConfig) -> Option<String> {
    let known =
        |fault: &String| !provider.config.contains_key("file") || fault.contains("is none of");
    made(provider).err().filter(known)
}

fn made(provider: &GuardrailProviderConfig) -> Result<Arc<dyn GuardrailPolicy>, String> {
    // Older configurations name a class: `package.module:AllowlistProvider`.
    let kind = provider
        .kind
        .rsplit([':', '.'])
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    match kind.trim_end_matches("provider").trim_end_matches("policy") {
        "allowlist" => read::<AllowlistPolicy>(provider),
        "rules" | "rule" => read::<RulePolicy>(provider),
        _ => Err(format!(
            "guardrails.provider.use {:?} is none of: allowlist, rules",
            provider.kind
        )),
    }
}

/// Where nothing is said, nothing was meant: the keys stand in the wrong place.
fn read<P: GuardrailPolicy + DeserializeOwned + 'static>(
    provider: &GuardrailProviderConfig,
) -> Result<Arc<dyn GuardrailPolicy>, String> {
    if provider.config.is_empty() {
        return Err("guardrails.provider.config says nothing".to_owned());
    }
    match serde_path_to_error::deserialize::<_, P>(Value::Object((*provider.config).clone())) {
        Ok(policy) => Ok(Arc::new(policy)),
        Err(error) => Err(format!(
            "guardrails.provider.config cannot be read: {error}"
        )),
    }
}
