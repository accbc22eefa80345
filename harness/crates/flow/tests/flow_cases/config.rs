//! Runner of cases of type `config`.

use std::collections::HashMap;

use deerflow_core::config::Variables;
use deerflow_flow::adapters::pi_mono::{
    ApiKey, PiMonoOptions, PiMonoSettings, Setting, SettingsInput, TransportKind, findings,
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

use super::pi_mono_kit::object;
use super::results::compare;

/// Runs a case and returns the differences.
pub(crate) fn run(case: &Value) -> Vec<String> {
    let config = &case["config"];
    let options = &config["options"];
    let text = |key: &str| options[key].as_str().map(str::to_owned);
    let allowed = [&config["allowedOrigins"], &options["allowedOrigins"]];
    let allowed = allowed.into_iter().filter_map(Value::as_array).flatten();
    let options = PiMonoOptions {
        base_url: text("baseUrl"),
        api_key: text("apiKey").map(SecretString::from),
        model: text("model"),
        temperature: options["temperature"].as_f64(),
        allowed_origins: allowed
            .filter_map(|origin| Some(origin.as_str()?.to_owned()))
            .collect(),
    };
    let env: HashMap<String, String> =
        serde_json::from_value(config["env"].clone()).unwrap_or_default();
    let settings = PiMonoSettings::resolve(&SettingsInput {
        agent_config: &object(config["agentAdapterConfig"].clone()),
        flow_config: &object(config["flowAdapterConfig"].clone()),
        profile: &serde_json::from_value(config["modelProfile"].clone()).unwrap_or_default(),
        options: &options,
        variables: &Variables::new(move |name| env.get(name).cloned()),
    });
    check(&case["expect"], &settings)
}

fn check(expect: &Value, settings: &PiMonoSettings) -> Vec<String> {
    let (resolved, sources) = resolved(settings);
    let mut out = Vec::new();
    let key_text = settings
        .api_key
        .as_ref()
        .and_then(|key| literal(&key.value));
    if key_text.is_some_and(|key| format!("{settings:?}").contains(&format!("{key:?}"))) {
        out.push("the debug form contains the API key".to_owned());
    }
    for (place, expected, found) in [
        ("resolved", &expect["resolved"], resolved),
        ("source", &expect["source"], sources),
    ] {
        if !expected.is_null() {
            compare(place, expected, Some(&Value::Object(found)), &mut out);
        }
    }
    let transport = settings.transport.as_ref().ok().copied();
    if let Some(expected) = expect["transport"].as_str()
        && transport.map(TransportKind::as_str) != Some(expected)
    {
        out.push(format!(
            "transport: expected {expected}, found {transport:?}"
        ));
    }
    let mut found: Vec<String> = findings(settings).into_iter().map(|one| one.code).collect();
    let mut expected: Vec<String> =
        serde_json::from_value(expect["errors"].clone()).unwrap_or_default();
    found.sort();
    expected.sort();
    if found != expected {
        out.push(format!("errors: expected {expected:?}, found {found:?}"));
    }
    out
}

/// Returns the values and their sources by key.
fn resolved(settings: &PiMonoSettings) -> (Map<String, Value>, Map<String, Value>) {
    let (mut values, mut sources) = (Map::new(), Map::new());
    let key = settings.api_key.as_ref().map(|key| Setting {
        value: literal(&key.value),
        source: key.source,
    });
    let rows = [
        ("baseUrl", settings.base_url.as_ref().map(pair)),
        ("apiKey", key.as_ref().map(pair)),
        ("model", settings.model.as_ref().map(pair)),
        ("temperature", settings.temperature.as_ref().map(pair)),
    ];
    for (key, row) in rows {
        if let Some((value, source)) = row {
            values.insert(key.to_owned(), value);
            sources.insert(key.to_owned(), json!(source));
        }
    }
    (values, sources)
}

fn pair<T: serde::Serialize>(setting: &Setting<T>) -> (Value, &'static str) {
    (json!(setting.value), setting.source.as_str())
}

fn literal(key: &ApiKey) -> Option<String> {
    match key {
        ApiKey::Literal(key) => Some(key.expose_secret().to_owned()),
        ApiKey::Secret(_) => None,
    }
}
