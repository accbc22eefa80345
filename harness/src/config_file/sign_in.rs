//! Keys and sign-in files of model entries that give none: from the places where their providers' own programs keep them.

use std::path::Path;

use crate::config::ModelConfig;
use crate::models::ProviderKind;
use serde_json::Value;

use super::environment::Environment;

/// Where an entry's key may stand.
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
/// What says that the server is not the provider's own, so that the provider's key is not meant for it.
const ADDRESSES: &[&str] = &[
    "base_url",
    "api_base",
    "openai_api_base",
    "anthropic_api_url",
];

/// Completes the entries that give neither a key nor an address of their own, and the paths that begin at home.
pub(super) fn borrow(models: &mut [ModelConfig], environment: &Environment) {
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
            let found =
                found.or_else(|| Some(("credentials_path", usual_file(kind, environment)?)));
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

/// Where a provider's own program keeps its sign-in. Claude's is taken only where it is: most who use that kind have a key.
fn usual_file(kind: ProviderKind, environment: &Environment) -> Option<String> {
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

/// The variables that providers' own programs read, and the key that each stands for.
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
mod tests {
    use super::*;

    fn borrowed(
        provider: &str,
        keys: &[(&str, &str)],
        variables: &[(&str, &str)],
    ) -> Vec<(String, String)> {
        let mut model = ModelConfig::new("m", provider, "x");
        for (key, value) in keys {
            model.extra.insert(*key, Value::String((*value).to_owned()));
        }
        let mut models = [model];
        borrow(
            &mut models,
            &Environment::of("/", variables.iter().copied()),
        );
        models[0]
            .extra
            .iter()
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect()
    }

    fn one(key: &str, value: &str) -> Vec<(String, String)> {
        vec![(key.to_owned(), value.to_owned())]
    }

    #[test]
    fn an_entry_without_a_key_takes_its_providers_own() {
        let keys = [
            ("OPENAI_API_KEY", "sk-o"),
            ("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat"),
            ("HOME", "/home/ann/"),
        ];
        assert_eq!(
            borrowed("langchain_openai:ChatOpenAI", &[], &keys),
            one("api_key", "sk-o")
        );
        assert_eq!(borrowed("claude", &[], &keys), one("api_key", "sk-ant-oat"));
        assert_eq!(
            borrowed("codex", &[], &keys),
            one("credentials_path", "/home/ann/.codex/auth.json")
        );
        assert_eq!(
            borrowed("codex", &[], &[("CODEX_AUTH_PATH", "/x.json")]),
            one("credentials_path", "/x.json")
        );
        assert!(borrowed("anthropic", &[], &keys).is_empty());
    }

    #[test]
    fn the_sign_in_of_claude_is_used_where_there_is_one() {
        let home = tempfile::tempdir().unwrap();
        let variables = [("HOME", home.path().to_str().unwrap())];
        assert!(borrowed("claude", &[], &variables).is_empty());
        let path = home.path().join(".claude/.credentials.json");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "{}").unwrap();
        assert_eq!(
            borrowed("claude", &[], &variables),
            one("credentials_path", path.to_str().unwrap())
        );
        assert!(borrowed("anthropic", &[], &variables).is_empty());
    }

    #[test]
    fn a_key_is_never_taken_to_a_server_of_somebody_else() {
        let keys = [("OPENAI_API_KEY", "sk-o"), ("HOME", "/h")];
        for given in [
            ("base_url", "http://127.0.0.1/v1"),
            ("api_key", "own"),
            ("credentials_path", "/own"),
        ] {
            assert_eq!(borrowed("openai", &[given], &keys), one(given.0, given.1));
        }
        assert_eq!(
            borrowed("claude", &[("credentials_path", "~/c.json")], &keys),
            one("credentials_path", "/h/c.json")
        );
    }
}
