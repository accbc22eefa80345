//! Wire of each provider kind over HTTP.

use std::sync::Arc;

use super::anthropic::Messages;
use super::dependencies::ModelDependencies;
use super::gemini::GenerateContent;
use super::http::{Endpoint, HttpChatModel, SharedHttp, Wire};
use super::ollama::Chat;
use super::openai::{ChatCompletions, Dialect};
use super::responses::Responses;
use super::{ChatModel, ModelEntry, ModelInfo, ProviderKind};

/// Keys by which an entry sets its proxy.
const PROXY_KEYS: [&str; 3] = ["proxy", "openai_proxy", "anthropic_proxy"];

/// Builds the model of `entry`. Returns `None` if its kind is not reached over HTTP.
pub(super) fn build_http_model(
    kind: ProviderKind,
    entry: &ModelEntry,
    info: ModelInfo,
    dependencies: &ModelDependencies,
) -> Option<Result<Arc<dyn ChatModel>, String>> {
    let uses_responses_api = entry
        .extra
        .get("use_responses_api")
        .is_some_and(|value| value == true);
    let model = match (kind, dialect(kind, entry)) {
        (_, Some(dialect)) if uses_responses_api => http_model(
            Responses::of(entry, dialect.defaults),
            entry,
            info,
            dependencies,
        ),
        (_, Some(dialect)) => http_model(
            ChatCompletions::of(entry, dialect),
            entry,
            info,
            dependencies,
        ),
        (ProviderKind::Codex, None) => {
            http_model(Responses::of_codex(entry), entry, info, dependencies)
        }
        (ProviderKind::Anthropic, None) => {
            http_model(Messages::of(entry, false), entry, info, dependencies)
        }
        (ProviderKind::Claude, None) => {
            http_model(Messages::of(entry, true), entry, info, dependencies)
        }
        (ProviderKind::Gemini, None) => {
            http_model(GenerateContent::of(entry), entry, info, dependencies)
        }
        (ProviderKind::Ollama, None) => http_model(Chat::of(entry), entry, info, dependencies),
        _ => return None,
    };
    Some(model)
}

/// Returns the dialect if the entry's server speaks chat completions.
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

/// Builds a model that uses this wire.
fn http_model<W: Wire>(
    wire_and_endpoint: Result<(W, Endpoint), String>,
    entry: &ModelEntry,
    info: ModelInfo,
    dependencies: &ModelDependencies,
) -> Result<Arc<dyn ChatModel>, String> {
    let (wire, endpoint) = wire_and_endpoint?;
    let proxy = PROXY_KEYS.iter().find_map(|key| {
        entry
            .extra
            .get(*key)?
            .as_str()
            .filter(|address| !address.trim().is_empty())
    });
    let http = proxy.map_or_else(
        || dependencies.http.get_or_init(SharedHttp::new).clone(),
        SharedHttp::through,
    );
    let http = http.map_err(|error| error.to_string())?;
    Ok(Arc::new(HttpChatModel::new(
        entry.clone(),
        info,
        wire,
        endpoint,
        http,
        Arc::clone(&dependencies.clock),
    )))
}
