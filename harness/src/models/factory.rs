//! Builds the model that an entry describes: the one place that knows which providers this version has.

use std::sync::Arc;

use super::{ChatModel, ModelEntry, ModelInfo, ProviderKind, ScriptedModel};
use crate::clock::Clock;

/// What adapters share.
#[derive(Debug)]
pub(super) struct Parts {
    /// For waits that providers give as dates.
    #[cfg_attr(not(feature = "providers"), expect(dead_code, reason = "no provider of this build gives waits"))]
    clock: Arc<dyn Clock>,
    #[cfg(feature = "providers")]
    http: std::sync::OnceLock<Result<super::http::SharedHttp, super::http::HttpUnavailable>>,
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
    let kind = ProviderKind::parse(&entry.use_path).map_err(|error| format!("{error}; supported: {}", supported()))?;
    let info = ModelInfo {
        name: entry.name.clone(),
        model: entry.model.clone(),
        provider: kind.as_str().to_owned(),
        supports_vision: entry.supports_vision,
    };
    match kind {
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
    }
}

/// The words of the kinds that can be built.
fn supported() -> String {
    let built = |kind: &ProviderKind| *kind == ProviderKind::Scripted || cfg!(feature = "providers");
    ProviderKind::all().filter(built).map(ProviderKind::as_str).collect::<Vec<_>>().join(", ")
}

/// How `kind` speaks chat completions, if it does.
#[cfg(feature = "providers")]
fn openai_dialect(kind: ProviderKind) -> Option<super::openai::Dialect> {
    use super::openai::Dialect;
    match kind {
        ProviderKind::OpenAi => Some(Dialect::OPENAI),
        ProviderKind::DeepSeek => Some(Dialect::DEEPSEEK),
        ProviderKind::OpenAiCompatReplay | ProviderKind::MiMo | ProviderKind::StepFun => Some(Dialect::REASONING_REPLAY),
        ProviderKind::Vllm => Some(Dialect::VLLM),
        ProviderKind::MiniMax => Some(Dialect::MINIMAX),
        ProviderKind::MindIe => Some(Dialect::MINDIE),
        ProviderKind::Ollama => Some(Dialect::OLLAMA),
        ProviderKind::Kimi => Some(Dialect::KIMI),
        ProviderKind::Doubao => Some(Dialect::DOUBAO),
        ProviderKind::Qwen => Some(Dialect::QWEN),
        ProviderKind::OpenRouter => Some(Dialect::OPENROUTER),
        _ => None,
    }
}

/// A model behind HTTP, where `kind` has one.
#[cfg(feature = "providers")]
fn over_http(kind: ProviderKind, entry: &ModelEntry, info: ModelInfo, parts: &Parts) -> Option<Result<Arc<dyn ChatModel>, String>> {
    use super::anthropic::Messages;
    use super::gemini::GenerateContent;
    use super::openai::ChatCompletions;
    use super::responses::{Flavor, Responses};
    let wants_responses = entry.extra.get("use_responses_api").is_some_and(|wanted| wanted == true);
    match (kind, openai_dialect(kind)) {
        (_, Some(_)) if wants_responses => Some(driven(Responses::of(entry, Flavor::OpenAi), entry, info, parts)),
        (ProviderKind::Codex, None) => Some(driven(Responses::of(entry, Flavor::Codex), entry, info, parts)),
        (_, Some(dialect)) => Some(driven(ChatCompletions::of(entry, dialect), entry, info, parts)),
        (ProviderKind::Anthropic, None) => Some(driven(Messages::of(entry, false), entry, info, parts)),
        (ProviderKind::Gemini, None) => Some(driven(GenerateContent::of(entry), entry, info, parts)),
        (ProviderKind::Claude, None) => Some(driven(Messages::of(entry, true), entry, info, parts)),
        _ => None,
    }
}

/// The model that asks through a wire.
#[cfg(feature = "providers")]
fn driven<W: super::http::Wire>(
    way: Result<(W, super::http::Endpoint), String>,
    entry: &ModelEntry,
    info: ModelInfo,
    parts: &Parts,
) -> Result<Arc<dyn ChatModel>, String> {
    use super::http::{HttpChatModel, SharedHttp};
    let (wire, endpoint) = way?;
    let http = parts.http.get_or_init(SharedHttp::new).clone().map_err(|error| error.to_string())?;
    Ok(Arc::new(HttpChatModel::new(entry.clone(), info, wire, endpoint, http, Arc::clone(&parts.clock))))
}

#[cfg(not(feature = "providers"))]
fn over_http(_: ProviderKind, _: &ModelEntry, _: ModelInfo, _: &Parts) -> Option<Result<Arc<dyn ChatModel>, String>> {
    None
}
