//! Builds the model that an entry describes: the one place that knows which providers this version has.

use std::sync::Arc;

use super::{ChatModel, ModelEntry, ModelInfo, ProviderKind, ScriptedModel};
use crate::clock::Clock;

/// What adapters share.
#[derive(Debug)]
pub(super) struct Parts {
    /// For waits that providers give as dates.
    #[cfg_attr(not(feature = "openai"), expect(dead_code, reason = "no provider of this build gives waits"))]
    clock: Arc<dyn Clock>,
    #[cfg(feature = "openai")]
    http: std::sync::OnceLock<Result<super::openai::SharedHttp, super::openai::HttpUnavailable>>,
}

impl Parts {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            #[cfg(feature = "openai")]
            http: std::sync::OnceLock::new(),
        }
    }
}

/// The model of `entry`, or what to change in the entry.
pub(super) fn build(entry: &ModelEntry, parts: &Parts) -> Result<Arc<dyn ChatModel>, String> {
    if let Some(fault) = &entry.fault {
        return Err(fault.clone());
    }
    let kind = ProviderKind::parse(&entry.use_path).map_err(|error| format!("{error}; supported: {}", supported()))?;
    let info = ModelInfo {
        name: entry.name.clone(),
        model: entry.model.clone(),
        provider: kind.as_str().to_owned(),
        supports_vision: entry.supports_vision,
    };
    match kind {
        ProviderKind::Scripted => Ok(Arc::new(ScriptedModel::with_info(info))),
        _ => chat_completions(kind, entry, info, parts).unwrap_or_else(|| {
            Err(format!(
                "the provider kind `{}` (`use: {}`) is not in this version; supported: {}. Many providers also speak OpenAI chat \
                 completions: configure `use: openai` with their `base_url` and `api_key`",
                kind.as_str(),
                entry.use_path,
                supported()
            ))
        }),
    }
}

/// The words of the kinds that can be built.
fn supported() -> String {
    let kinds = [
        ProviderKind::Scripted,
        #[cfg(feature = "openai")]
        ProviderKind::OpenAi,
        #[cfg(feature = "openai")]
        ProviderKind::DeepSeek,
        #[cfg(feature = "openai")]
        ProviderKind::OpenAiCompatReplay,
        #[cfg(feature = "openai")]
        ProviderKind::MiMo,
        #[cfg(feature = "openai")]
        ProviderKind::StepFun,
        #[cfg(feature = "openai")]
        ProviderKind::Vllm,
        #[cfg(feature = "openai")]
        ProviderKind::MiniMax,
    ];
    kinds.map(ProviderKind::as_str).join(", ")
}

#[cfg(feature = "openai")]
fn openai_dialect(kind: ProviderKind) -> Option<super::openai::Dialect> {
    use super::openai::Dialect;
    match kind {
        ProviderKind::OpenAi => Some(Dialect::OPENAI),
        ProviderKind::DeepSeek => Some(Dialect::DEEPSEEK),
        ProviderKind::OpenAiCompatReplay | ProviderKind::MiMo | ProviderKind::StepFun => Some(Dialect::REASONING_REPLAY),
        ProviderKind::Vllm => Some(Dialect::VLLM),
        ProviderKind::MiniMax => Some(Dialect::MINIMAX),
        _ => None,
    }
}

/// A model behind chat completions, where `kind` speaks them.
#[cfg(feature = "openai")]
fn chat_completions(kind: ProviderKind, entry: &ModelEntry, info: ModelInfo, parts: &Parts) -> Option<Result<Arc<dyn ChatModel>, String>> {
    use super::openai::{OpenAiChatModel, SharedHttp};
    let dialect = openai_dialect(kind)?;
    let build = || -> Result<Arc<dyn ChatModel>, String> {
        if entry.extra.get("use_responses_api").is_some_and(|wanted| wanted == true) {
            return Err(
                "the responses API is not in this version: remove `use_responses_api`, chat completions serve the same models".to_owned()
            );
        }
        let http = parts.http.get_or_init(SharedHttp::new).clone().map_err(|error| error.to_string())?;
        Ok(Arc::new(OpenAiChatModel::new(entry.clone(), info, dialect, http, Arc::clone(&parts.clock))?))
    };
    Some(build())
}

#[cfg(not(feature = "openai"))]
fn chat_completions(_: ProviderKind, _: &ModelEntry, _: ModelInfo, _: &Parts) -> Option<Result<Arc<dyn ChatModel>, String>> {
    None
}
