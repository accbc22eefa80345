//! Tests of loading: accepted files, rejected files, and the texts of errors and warnings.

#[path = "load_environment_tests.rs"]
mod environment;
#[path = "load_error_tests.rs"]
mod error;
#[path = "load_example_tests.rs"]
mod example;

use crate::config::{DatabaseBackend, RunEventsBackend};
use secrecy::ExposeSecret;

use super::super::known_keys;
use super::*;

const FILE: &str = "config.yaml";
const EXAMPLE: &str = include_str!("../../../config.example.yaml");

fn load_with(text: &str, variables: &[(&str, &str)]) -> Result<Loaded, ConfigError> {
    parse(
        text,
        Path::new(FILE),
        &Environment::of("/", variables.iter().copied()),
    )
}

fn refusal(text: &str) -> String {
    load_with(text, &[]).unwrap_err().to_string()
}

#[test]
fn settings_without_effect_are_reported() {
    let cases = [
        (
            "skill_evolution: {enabled: true}\n",
            "skill_evolution.enabled",
        ),
        (
            "scheduler: {multi_instance: true}\n",
            "scheduler.multi_instance",
        ),
        ("scheduler: {lease_seconds: 9}\n", "scheduler.lease_seconds"),
        ("agent_storage: {backend: db}\n", "agent_storage.backend"),
        (
            "sandbox: {ownership: {type: redis}}\n",
            "sandbox.ownership.type",
        ),
        (
            "extensions: {mcpInterceptors: [a.b]}\n",
            "extensions.mcpInterceptors",
        ),
        (
            "memory: {backend_config: {model: {provider: openai}}}\n",
            "memory.backend_config.model",
        ),
        (
            "memory: {backend_config: {consolidation_enabled: true}}\n",
            "memory.backend_config.consolidation_enabled",
        ),
        (
            "models: [{name: m, use: openai, model: m, api_key: k, pool_timeout: 30}]\n",
            "models[0].pool_timeout",
        ),
        (
            "database: {backend: sqlite}\ncheckpointer: {type: postgres, connection_string: x}\n",
            "checkpointer.type",
        ),
        ("database: {pool_recycle: 60}\n", "database.pool_recycle"),
        (
            "database: {checkpoint_cache: {type: redis}}\n",
            "database.checkpoint_cache.type",
        ),
        ("memory: {mode: tool}\n", "memory.mode"),
        ("skill_scan: {enabled: false}\n", "skill_scan.enabled"),
        (
            "safety_finish_reason: {detectors: [{use: a.b}]}\n",
            "safety_finish_reason.detectors",
        ),
        (
            "channels: {wechat: {enabled: true, bot_token: t}}\n",
            "channels.wechat.enabled",
        ),
        (
            "channels: {inbound_queue_maxsize: 9}\n",
            "channels.inbound_queue_maxsize",
        ),
        (
            "channels: {session: {users: {U1: {assistant_id: a}}}}\n",
            "channels.session.users",
        ),
        (
            "channel_connections: {buzz: {enabled: true}}\n",
            "channel_connections.buzz.enabled",
        ),
        (
            "dedupe_storage: {backend: database}\n",
            "dedupe_storage.backend",
        ),
        ("skills: {use: my.storage:Skills}\n", "skills.use"),
        (
            "run_ownership: {heartbeat_enabled: true}\n",
            "run_ownership.heartbeat_enabled",
        ),
        (
            "models: [{name: a, use: scripted, model: m, output_version: v1}]\n",
            "models[0].output_version",
        ),
        (
            "extensions: {mcpServers: {s: {command: x, routing: {mode: prefer}}}}\n",
            "extensions.mcpServers.s.routing.mode",
        ),
    ];
    for (text, key) in cases {
        let text = format!("config_version: {CURRENT_CONFIG_VERSION}\n{text}");
        let keys: Vec<_> = load_with(&text, &[])
            .unwrap()
            .warnings
            .into_iter()
            .map(|warning| warning.key)
            .collect();
        assert_eq!(keys, [key]);
    }
}

#[test]
fn setting_at_default_needs_no_warning() {
    for text in [
        "logging: {enhance: {enabled: true}}\n",
        "database: {pool_recycle: 300, command_timeout: null, pool_size: 5}\n",
        "skills: {use: \"deerflow.skills.storage.local_skill_storage:LocalSkillStorage\"}\n",
        "skill_scan: {enabled: true}\nchannels: {wechat: {enabled: false}}\n",
        "channels: {langgraph_url: \"http://localhost:8001/api\", max_concurrency: 5}\n",
        "channels: {slack: {enabled: true, bot_token: t, app_token: t}}\n",
        "channel_connections: {enabled: true, slack: {enabled: true}}\n",
    ] {
        let text = format!("config_version: {CURRENT_CONFIG_VERSION}\n{text}");
        assert_eq!(load_with(&text, &[]).unwrap().warnings, [], "{text}");
    }
}

#[test]
fn checkpointer_postgres_is_used_as_database() {
    let text = "checkpointer: {type: postgres, connection_string: $PG, postgres_schema: flow}\n";
    let loaded = load_with(text, &[("PG", "postgresql://u:p@h/d")]).unwrap();
    let database = &loaded.config.database;
    assert_eq!(database.backend, DatabaseBackend::Postgres);
    assert_eq!(
        database.postgres_url.as_ref().unwrap().expose_secret(),
        "postgresql://u:p@h/d"
    );
    assert_eq!(database.postgres_schema, "flow");
    assert!(
        loaded
            .warnings
            .iter()
            .any(|warning| warning.key == "checkpointer.type"),
        "{:?}",
        loaded.warnings
    );
    let other = load_with(
        &format!("database: {{backend: memory}}\n{text}"),
        &[("PG", "x")],
    )
    .unwrap();
    assert_eq!(other.config.database.backend, DatabaseBackend::Memory);
}

#[test]
fn numbers_and_booleans_may_be_text() {
    let text = "title: {max_words: $WORDS, enabled: $ON}\nmemory: {shutdown_flush_timeout_seconds: '2.5'}\n";
    let config = load_with(text, &[("WORDS", "7"), ("ON", "no")])
        .unwrap()
        .config;
    assert_eq!(config.title.max_words, 7);
    assert!(!config.title.enabled);
    assert_eq!(config.memory.shutdown_flush_timeout_seconds, 2.5);
}

#[test]
fn empty_sections_use_defaults() {
    let config = load_with("title:\ndatabase: null\nmodels: ~\nsandbox:\n", &[])
        .unwrap()
        .config;
    assert_eq!(config.title.max_words, 6);
    assert_eq!(config.database.backend, DatabaseBackend::Sqlite);
    assert!(config.models.is_empty());
}

#[test]
fn other_config_versions_are_warned_about() {
    let warning = |text: &str| load_with(text, &[]).unwrap().warnings[0].to_string();
    assert_eq!(
        warning("title: {}\n"),
        "config.yaml:1:1: `config_version` is missing; `deerflow config upgrade` updates the file to 34"
    );
    assert_eq!(
        warning("title: {}\nconfig_version: 12\n"),
        "config.yaml:2:1: `config_version` is 12; `deerflow config upgrade` updates the file to 34"
    );
    assert_eq!(
        warning("config_version: 99\n"),
        "config.yaml:1:1: `config_version` is 99, newer than version 34 of this build"
    );
}

#[test]
fn python_class_paths_are_warned_about() {
    let text = "config_version: 34\nplugins: [{use: a.b:C}]\nextensions: {middlewares: ['x:Y']}\n";
    let keys: Vec<String> = load_with(text, &[])
        .unwrap()
        .warnings
        .into_iter()
        .map(|warning| warning.key)
        .collect();
    assert_eq!(keys, ["plugins", "extensions.middlewares"]);
}

#[test]
fn missing_file_selects_scripted_model() {
    let empty = tempfile::tempdir().unwrap();
    let root = empty.path().join("project");
    std::fs::create_dir(&root).unwrap();
    let loaded = load(None, &Environment::of(&root, [("A", "b")])).unwrap();
    assert!(loaded.path.is_none());
    assert_eq!(loaded.config.model(None).unwrap().provider, "scripted");
    assert_eq!(loaded.config.database.backend, DatabaseBackend::Sqlite);
}

#[test]
fn identity_providers_are_in_the_order_of_the_file() {
    let provider = |name: &str| {
        format!(
            "      {name}: {{display_name: D, issuer: \"https://id.test\", client_id: c, client_secret: $S}}\n"
        )
    };
    let text = format!(
        "auth:\n  oidc:\n    enabled: true\n    providers:\n{}{}",
        provider("zeta"),
        provider("alpha")
    );
    let loaded = load_with(&text, &[("S", "secret")]).unwrap();
    let names: Vec<_> = loaded.config.auth.oidc.providers.keys().collect();
    assert_eq!(names, ["zeta", "alpha"]);
    let error = load_with(&text.replace("id.test", ""), &[("S", "secret")]).unwrap_err();
    let error = error.to_string();
    assert!(error.contains(":5:"), "{error}");
    assert!(error.contains("auth.oidc.providers.zeta.issuer"), "{error}");
}
