//! Builds the model of an entry. Only this file depends on the set of providers in this build.

use std::sync::Arc;

use super::concurrency_limit::ConcurrencyLimited;
use super::dependencies::ModelDependencies;
#[cfg(feature = "providers")]
use super::providers::build_http_model;
use super::size_limit::SizeLimited;
use super::{ChatModel, ModelEntry, ModelInfo, ProviderKind, ScriptedModel};

/// Builds the model of `entry`. The error states what to change in the entry.
pub(super) fn build(
    entry: &ModelEntry,
    dependencies: &ModelDependencies,
) -> Result<Arc<dyn ChatModel>, String> {
    if let Some(fault) = &entry.fault {
        return Err(fault.clone());
    }
    let kind = ProviderKind::parse(&entry.use_path)
        .map_err(|error| format!("{error}; supported: {}", supported()))?;
    let info = ModelInfo {
        name: entry.name.clone(),
        model: entry.model.clone(),
        provider: kind.as_str().to_owned(),
        supports_vision: entry.supports_vision,
    };
    let built: Result<Arc<dyn ChatModel>, String> = match kind {
        ProviderKind::Scripted => Ok(Arc::new(ScriptedModel::with_info(info))),
        _ => build_http_model(kind, entry, info, dependencies).unwrap_or_else(|| {
            Err(format!(
                "the provider kind `{}` (`use: {}`) is not supported by this build; supported: {}. Many providers also speak OpenAI chat \
                 completions: configure `use: openai` with their `base_url` and `api_key`",
                kind.as_str(),
                entry.use_path,
                supported()
            ))
        }),
    };
    built.map(|model| ConcurrencyLimited::wrap(entry, SizeLimited::wrap(entry, model)))
}

/// Returns the names of the kinds that this build supports.
fn supported() -> String {
    let built =
        |kind: &ProviderKind| *kind == ProviderKind::Scripted || cfg!(feature = "providers");
    ProviderKind::all()
        .filter(built)
        .map(ProviderKind::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Stand-in for builds without HTTP providers.
#[cfg(not(feature = "providers"))]
fn build_http_model(
    _: ProviderKind,
    _: &ModelEntry,
    _: ModelInfo,
    _: &ModelDependencies,
) -> Option<Result<Arc<dyn ChatModel>, String>> {
    None
}
