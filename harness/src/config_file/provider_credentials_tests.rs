//! Tests of provider credentials.

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
    fill_in_credentials(
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
fn entry_without_key_uses_provider_variables() {
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
fn claude_credentials_file_is_used_if_present() {
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
fn provider_key_is_not_used_for_custom_address() {
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
