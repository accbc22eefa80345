//! Levels, blanks, secrets and trust of settings.

use std::collections::HashMap;

use serde_json::json;

use super::super::findings;
use super::*;

fn resolve(
    agent: Value,
    profile: ModelProfile,
    options: &PiMonoOptions,
    env: &[(&str, &str)],
) -> PiMonoSettings {
    let env: HashMap<String, String> = env
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let flow = json!({"baseUrl": " http://flow// ", "model": "m-flow", "temperature": 0.3});
    PiMonoSettings::resolve(&SettingsInput {
        agent_config: agent.as_object().unwrap(),
        flow_config: flow.as_object().unwrap(),
        profile: &profile,
        options,
        variables: &Variables::new(move |name| env.get(name).cloned()),
    })
}

fn agent_only(agent: Value) -> PiMonoSettings {
    let options = PiMonoOptions::default();
    let flow = Map::new();
    PiMonoSettings::resolve(&SettingsInput {
        agent_config: agent.as_object().unwrap(),
        flow_config: &flow,
        profile: &ModelProfile::default(),
        options: &options,
        variables: &Variables::default(),
    })
}

#[test]
fn blank_values_fall_through_to_the_next_level() {
    let agent =
        json!({"baseUrl": "", "model": " ", "temperature": "x", "apiKey": "", "transport": " "});
    let profile = ModelProfile {
        model: Some(" ".to_owned()),
        temperature: Some(f64::NAN),
        ..ModelProfile::default()
    };
    let options = PiMonoOptions {
        api_key: Some(SecretString::from(" ")),
        ..PiMonoOptions::default()
    };
    let env = [
        ("AGENTSFLOW_PI_MONO_API_KEY", " "),
        ("AGENTSFLOW_LLM_API_KEY", "k"),
    ];
    let found = resolve(agent, profile, &options, &env);
    let text = |setting: Option<Setting<String>>| setting.map(|one| (one.value, one.source));
    assert_eq!(
        text(found.base_url),
        Some(("http://flow".to_owned(), Source::AdapterConfig))
    );
    assert_eq!(
        text(found.model),
        Some(("m-flow".to_owned(), Source::AdapterConfig))
    );
    assert_eq!(found.temperature.map(|one| one.value), Some(0.3));
    let source = found.api_key.map(|key| key.source);
    assert_eq!(source, Some(Source::Variable("AGENTSFLOW_LLM_API_KEY")));
    assert_eq!(found.transport, Ok(TransportKind::Http));
}

#[test]
fn variables_are_examined_in_their_order() {
    let all = [
        ("VITE_AGENTSFLOW_PI_MONO_MODEL", "1"),
        ("AGENTSFLOW_PI_MONO_MODEL", "2"),
        ("VITE_AGENTSFLOW_LLM_MODEL", "3"),
        ("AGENTSFLOW_LLM_MODEL", "4"),
    ];
    for (at, (name, value)) in all.iter().enumerate() {
        let env: HashMap<&str, &str> = all[at..].iter().copied().collect();
        let variables = Variables::new({
            let env: HashMap<String, String> = env
                .into_iter()
                .map(|(a, b)| (a.to_owned(), b.to_owned()))
                .collect();
            move |name| env.get(name).cloned()
        });
        let found = variable(&variables, &MODEL_NAMES).unwrap();
        assert_eq!(
            (found.source.as_str(), found.value.as_str()),
            (*name, *value)
        );
    }
}

#[test]
fn secret_reference_is_a_key_and_debug_hides_literals() {
    let found = agent_only(json!({"apiKey": {"secret": " mine "}}));
    assert!(matches!(found.api_key.unwrap().value, ApiKey::Secret(name) if name == "mine"));
    for config in [
        json!({"apiKey": {"secret": ""}}),
        json!({"apiKey": 5}),
        json!({"apiKey": {}}),
    ] {
        assert!(agent_only(config).api_key.is_none());
    }
    let found = agent_only(json!({"apiKey": "canary-key"}));
    assert!(!format!("{found:?}").contains("canary-key"));
}

#[test]
fn transport_is_named_or_follows_from_the_url() {
    let deepseek = "https://api.deepseek.com/v1";
    let table = [
        (Some(" DeepSeek "), "http://x", Ok(TransportKind::DeepSeek)),
        (
            Some("openai-compatible"),
            "http://x",
            Ok(TransportKind::DeepSeek),
        ),
        (Some("HTTP"), deepseek, Ok(TransportKind::Http)),
        (Some("pi-mono"), "http://x", Ok(TransportKind::Http)),
        (None, deepseek, Ok(TransportKind::DeepSeek)),
        (None, "https://x/api.deepseek.com", Ok(TransportKind::Http)),
        (
            Some("smoke"),
            deepseek,
            Err(UnknownTransport("smoke".to_owned())),
        ),
    ];
    for (name, url, expected) in table {
        let found = agent_only(json!({"transport": name, "baseUrl": url}));
        assert_eq!(found.transport, expected, "{name:?} {url}");
    }
}

#[test]
fn application_key_needs_trusted_origin() {
    let codes = |agent: Value, options: &PiMonoOptions, env: &[(&str, &str)]| -> Vec<String> {
        let found = resolve(agent, ModelProfile::default(), options, env);
        findings(&found).into_iter().map(|one| one.code).collect()
    };
    let key = [("AGENTSFLOW_PI_MONO_API_KEY", "k")];
    let none = PiMonoOptions::default();
    assert_eq!(codes(json!({}), &none, &key), ["untrusted_base_url"]);
    assert!(codes(json!({"apiKey": "own"}), &none, &key).is_empty());
    assert!(codes(json!({}), &none, &[]).is_empty());
    let allowed = PiMonoOptions {
        allowed_origins: vec!["http://flow:80/".to_owned()],
        ..PiMonoOptions::default()
    };
    assert!(codes(json!({}), &allowed, &key).is_empty());
    let of_application = [key[0], ("VITE_AGENTSFLOW_LLM_BASE_URL", "http://flow/v1")];
    assert!(codes(json!({}), &none, &of_application).is_empty());
}
