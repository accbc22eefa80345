//! Builds a policy from the `guardrails` section of the configuration.

use std::sync::Arc;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::allowlist::AllowlistPolicy;
use super::policy::{Decision, GuardrailPolicy, GuardrailRequest, PolicyError};
use super::rules::RulePolicy;
use crate::config::GuardrailProviderConfig;

/// Policy that could not be built: every evaluation returns an error with the reason.
#[derive(Debug, Clone)]
pub struct InvalidPolicy(pub String);

#[async_trait]
impl GuardrailPolicy for InvalidPolicy {
    async fn evaluate(&self, _request: &GuardrailRequest<'_>) -> Result<Decision, PolicyError> {
        Err(PolicyError(self.0.clone()))
    }
}

/// Builds the configured policy; [`InvalidPolicy`] if the configuration names none, or none that
/// this build contains.
pub fn policy_of(provider: Option<&GuardrailProviderConfig>) -> Arc<dyn GuardrailPolicy> {
    let policy = provider
        .ok_or_else(|| "guardrails.provider is absent".to_owned())
        .and_then(build);
    policy.unwrap_or_else(|why| {
        tracing::error!(%why, "cannot build the guardrail policy");
        Arc::new(InvalidPolicy(why))
    })
}

/// Returns the error in a provider's configuration, if there is one. A rules file that it names is
/// not read.
pub fn policy_config_error(provider: &GuardrailProviderConfig) -> Option<String> {
    let known =
        |fault: &String| !provider.config.contains_key("file") || fault.contains("is none of");
    build(provider).err().filter(known)
}

fn build(provider: &GuardrailProviderConfig) -> Result<Arc<dyn GuardrailPolicy>, String> {
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

/// An empty section is an error: its keys are probably at the wrong level.
fn read<P: GuardrailPolicy + DeserializeOwned + 'static>(
    provider: &GuardrailProviderConfig,
) -> Result<Arc<dyn GuardrailPolicy>, String> {
    if provider.config.is_empty() {
        return Err("guardrails.provider.config is empty".to_owned());
    }
    match serde_path_to_error::deserialize::<_, P>(Value::Object((*provider.config).clone())) {
        Ok(policy) => Ok(Arc::new(policy)),
        Err(error) => Err(format!(
            "guardrails.provider.config cannot be read: {error}"
        )),
    }
}
