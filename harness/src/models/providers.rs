//! Which wire a provider over HTTP speaks: the one list of them.

use std::sync::Arc;

use super::anthropic::Messages;
use super::factory::Parts;
use super::gemini::GenerateContent;
use super::http::{Endpoint, HttpChatModel, SharedHttp, Wire};
use super::ollama::Chat;
use super::openai::{ChatCompletions, Dialect};
use super::responses::Responses;
use super::{ChatModel, ModelEntry, ModelInfo, ProviderKind};

/// By which names an entry gives its proxy.
const PROXY_KEYS: [&str; 3] = ["proxy", "openai_proxy", "anthropic_proxy"];

/// The model of `entry`, where its kind is reached over HTTP.
pub(super) fn over_http(
    kind: ProviderKind,
    entry: &ModelEntry,
    info: ModelInfo,
    parts: &Parts,
) -> Option<Result<Arc<dyn ChatModel>, String>> {
    let wants_responses = entry
        .extra
        .get("use_responses_api")
        .is_some_and(|wanted| wanted == true);
    let model = match (kind, dialect(kind, entry)) {
        (_, Some(dialect)) if wants_responses => {
            driven(Responses::of(entry, dialect.site), entry, info, parts)
        }
        (_, Some(dialect)) => driven(ChatCompletions::of(entry, dialect), entry, info, parts),
        (ProviderKind::Codex, None) => driven(Responses::of_codex(entry), entry, info, parts),
        (ProviderKind::Anthropic, None) => driven(Messages::of(entry, false), entry, info, parts),
        (ProviderKind::Claude, None) => driven(Messages::of(entry, true), entry, info, parts),
        (ProviderKind::Gemini, None) => driven(GenerateContent::of(entry), entry, info, parts),
        (ProviderKind::Ollama, None) => driven(Chat::of(entry), entry, info, parts),
        _ => return None,
    };
    Some(model)
}

/// How the entry's server speaks chat completions, if it does.
fn dialect(kind: ProviderKind, entry: &ModelEntry) -> Option<Dialect> {
    match kind {
        ProviderKind::OpenAi => Some(Dialect::OPENAI),
        ProviderKind::DeepSeek => Some(Dialect::DEEPSEEK),
        ProviderKind::OpenAiCompatReplay | ProviderKind::MiMo | ProviderKind::StepFun => {
            Some(Dialect::REASONING_REPLAY)
        }
        ProviderKind::Vllm => Some(Dialect::VLLM),
        ProviderKind::MiniMax => Some(Dialect::MINIMAX),
        ProviderKind::MindIe => Some(Dialect::MINDIE),
        ProviderKind::Ollama if Chat::is_compatible_side(entry) => Some(Dialect::OLLAMA),
        ProviderKind::Kimi => Some(Dialect::KIMI),
        ProviderKind::Doubao => Some(Dialect::DOUBAO),
        ProviderKind::Qwen => Some(Dialect::QWEN),
        ProviderKind::OpenRouter => Some(Dialect::OPENROUTER),
        _ => None,
    }
}

/// The model that asks through a wire.
fn driven<W: Wire>(
    way: Result<(W, Endpoint), String>,
    entry: &ModelEntry,
    info: ModelInfo,
    parts: &Parts,
) -> Result<Arc<dyn ChatModel>, String> {
    let (wire, endpoint) = way?;
    let proxy = PROXY_KEYS.iter().find_map(|key| {
        entry
            .extra
            .get(*key)?
            .as_str()
            .filter(|address| !address.trim().is_empty())
    });
    let http = proxy.map_or_else(
        || parts.http.get_or_init(SharedHttp::new).clone(),
        SharedHttp::through,
    );
    let http = http.map_err(|error| error.to_string())?;
    Ok(Arc::new(HttpChatModel::new(
        entry.clone(),
        info,
        wire,
        endpoint,
        http,
        Arc::clone(&parts.clock),
    )))
}
