//! Default credentials of model entries: from the variables and files that the providers' own
//! programs use.

use std::path::Path;

use crate::config::ModelConfig;
use crate::models::ProviderKind;
use serde_json::Value;

use super::environment::Environment;

/// Keys of an entry that contain credentials.
const KEYS: &[&str] = &[
    "api_key",
    "api_keys",
    "credentials_path",
    "openai_api_key",
    "anthropic_api_key",
    "gemini_api_key",
    "google_api_key",
    "deepseek_api_key",
];
/// Keys of an entry that select another server, for which the provider's credentials are not
/// intended.
const ADDRESSES: &[&str] = &[
    "base_url",
    "api_base",
    "openai_api_base",
    "anthropic_api_url",
];

/// Sets the credentials of entries that have neither credentials nor an address, and expands `~/`
/// in paths.
pub(super) fn fill_in_credentials(models: &mut [ModelConfig], environment: &Environment) {
    for model in models {
        if !KEYS
            .iter()
            .chain(ADDRESSES)
            .any(|key| model.extra.contains_key(*key))
            && let Ok(kind) = ProviderKind::parse(&model.provider)
        {
            let found = variables(kind)
                .iter()
                .find_map(|(key, variable)| Some((*key, environment.filled(variable)?.to_owned())));
            let found = found.or_else(|| {
                Some((
                    "credentials_path",
                    default_credentials_file(kind, environment)?,
                ))
            });
            if let Some((key, value)) = found {
                model.extra.insert(key, Value::String(value));
            }
        }
        let path = model
            .extra
            .text("credentials_path")
            .and_then(|path| path.strip_prefix("~/"))
            .map(str::to_owned);
        if let (Some(path), Some(home)) = (path, environment.filled("HOME")) {
            model.extra.insert(
                "credentials_path",
                Value::String(format!("{}/{path}", home.trim_end_matches('/'))),
            );
        }
    }
}

/// Returns the credentials file of a provider's own program. Claude's file is used only if it
/// exists, because most users of Claude have an API key instead.
fn default_credentials_file(kind: ProviderKind, environment: &Environment) -> Option<String> {
    match kind {
        ProviderKind::Codex => Some("~/.codex/auth.json".to_owned()),
        ProviderKind::Claude => {
            let path = format!(
                "{}/.claude/.credentials.json",
                environment.filled("HOME")?.trim_end_matches('/')
            );
            Path::new(&path).is_file().then_some(path)
        }
        _ => None,
    }
}

/// Returns the entry keys and the variables that providers' own programs read for them.
fn variables(kind: ProviderKind) -> &'static [(&'static str, &'static str)] {
    match kind {
        ProviderKind::OpenAi => &[("api_key", "OPENAI_API_KEY")],
        ProviderKind::DeepSeek => &[("api_key", "DEEPSEEK_API_KEY")],
        ProviderKind::Anthropic => &[("api_key", "ANTHROPIC_API_KEY")],
        ProviderKind::Claude => &[
            ("api_key", "ANTHROPIC_API_KEY"),
            ("api_key", "CLAUDE_CODE_OAUTH_TOKEN"),
            ("api_key", "ANTHROPIC_AUTH_TOKEN"),
            ("credentials_path", "CLAUDE_CODE_CREDENTIALS_PATH"),
        ],
        ProviderKind::Gemini => &[("api_key", "GOOGLE_API_KEY"), ("api_key", "GEMINI_API_KEY")],
        ProviderKind::Kimi => &[("api_key", "MOONSHOT_API_KEY")],
        ProviderKind::Qwen => &[("api_key", "DASHSCOPE_API_KEY")],
        ProviderKind::OpenRouter => &[("api_key", "OPENROUTER_API_KEY")],
        ProviderKind::Codex => &[
            ("api_key", "CODEX_ACCESS_TOKEN"),
            ("credentials_path", "CODEX_AUTH_PATH"),
        ],
        _ => &[],
    }
}

#[cfg(test)]
#[path = "provider_credentials_tests.rs"]
mod tests;
