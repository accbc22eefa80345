//! Builds the model that an entry describes: the one place that knows which providers this version has.

use std::sync::Arc;

use super::bounded::Bounded;
use super::paced::Paced;
#[cfg(feature = "providers")]
use super::providers::over_http;
use super::{ChatModel, ModelEntry, ModelInfo, ProviderKind, ScriptedModel};
use crate::clock::Clock;

/// What adapters share.
#[derive(Debug)]
pub(super) struct Parts {
    /// For waits that providers give as dates.
    #[cfg_attr(
        not(feature = "providers"),
        expect(dead_code, reason = "no provider of this build gives waits")
    )]
    pub(super) clock: Arc<dyn Clock>,
    #[cfg(feature = "providers")]
    pub(super) http:
        std::sync::OnceLock<Result<super::http::SharedHttp, super::http::HttpUnavailable>>,
}

impl Parts {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            #[cfg(feature = "providers")]
            http: std::sync::OnceLock::new(),
        }
    }
}

/// The model of `entry`, or what to change in the entry.
pub(super) fn build(entry: &ModelEntry, parts: &Parts) -> Result<Arc<dyn ChatModel>, String> {
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
        _ => over_http(kind, entry, info, parts).unwrap_or_else(|| {
            Err(format!(
                "the provider kind `{}` (`use: {}`) is not in this version; supported: {}. Many providers also speak OpenAI chat \
                 completions: configure `use: openai` with their `base_url` and `api_key`",
                kind.as_str(),
                entry.use_path,
                supported()
            ))
        }),
    };
    built.map(|model| Paced::by(entry, Bounded::by(entry, model)))
}

/// The words of the kinds that can be built.
fn supported() -> String {
    let built =
        |kind: &ProviderKind| *kind == ProviderKind::Scripted || cfg!(feature = "providers");
    ProviderKind::all()
        .filter(built)
        .map(ProviderKind::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}

/// A model behind HTTP, in a build that has none.
#[cfg(not(feature = "providers"))]
fn over_http(
    _: ProviderKind,
    _: &ModelEntry,
    _: ModelInfo,
    _: &Parts,
) -> Option<Result<Arc<dyn ChatModel>, String>> {
    None
}
