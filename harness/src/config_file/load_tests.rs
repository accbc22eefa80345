//! Tests of loading: accepted files, rejected files, and the texts of errors and warnings.

use crate::config::{DatabaseBackend, RunEventsBackend};
use secrecy::ExposeSecret;

use super::super::known_keys;
use super::*;

const FILE: &str = "config.yaml";
const EXAMPLE: &str = include_str!("../../../config.example.yaml");
/// Sections in which every key has a type.
const TYPED_SECTIONS: [&str; 32] = [
    "logging",
    "logging.enhance",
    "token_usage",
    "title",
    "suggestions",
    "summarization",
    "memory",
    "uploads",
    "agents_api",
    "llm_call",
    "circuit_breaker",
    "run_ownership",
    "webhooks",
    "retention",
    "run_events",
    "database",
    "database.checkpoint_delta",
    "database.checkpoint_graph_cache",
    "database.checkpoint_cache",
    "stream_bridge",
    "subagents",
    "sandbox",
    "sandbox.limits",
    "sandbox.ownership",
    "sandbox.mounts[]",
    "skills",
    "auth",
    "auth.local",
    "runs",
    "testing",
    "tools[]",
    "tool_groups[]",
];

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
fn example_equals_defaults_without_warnings() {
    let loaded = load_with(EXAMPLE, &[]).unwrap();
    assert_eq!(loaded.warnings, []);
    let mut config = loaded.config;
    assert_eq!(config.models[0].provider, "scripted");
    config.models.clear();
    config.tools.clear();
    config.tool_groups.clear();
    config.config_version = 0;
    assert_eq!(format!("{config:?}"), format!("{:?}", AppConfig::default()));
}

#[test]
fn example_loads_with_all_keys_uncommented() {
    let mut inside = String::new();
    for line in EXAMPLE
        .lines()
        .skip_while(|line| !line.starts_with("config_version"))
    {
        let is_key = |text: &str| {
            let key = text
                .trim_start()
                .trim_start_matches("- ")
                .trim_start_matches('{');
            key.split_once(':').is_some_and(|(key, _)| {
                !key.is_empty()
                    && key
                        .bytes()
                        .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            })
        };
        match line.strip_prefix('#') {
            Some(rest) if rest.starts_with(' ') && is_key(rest) => {
                inside.push_str(&format!(" {rest}\n"))
            }
            Some(_) => {}
            None => inside.push_str(&format!("{line}\n")),
        }
    }
    let variables = [
        "OPENAI_API_KEY",
        "OPENAI_API_KEY_2",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "DATABASE_URL",
        "REDIS_URL",
        "TOKEN",
        "PROVISIONER_API_KEY",
        "DEERFLOW_WEBHOOK_SECRET",
    ];
    let loaded = load_with(&inside, &variables.map(|name| (name, "value")))
        .unwrap_or_else(|error| panic!("{error}\n{inside}"));
    assert_eq!(loaded.warnings, [], "{inside}");
    assert_eq!(loaded.config.models.len(), 6);
}

#[test]
fn example_contains_every_typed_key() {
    let top = [
        "config_version",
        "log_level",
        "max_recursion_limit",
        "models",
        "tools",
        "tool_groups",
    ];
    for key in top {
        assert!(EXAMPLE.contains(&format!("\n{key}:")), "{key}");
    }
    for at in TYPED_SECTIONS {
        let section = at.split(['.', '[']).next().unwrap();
        let start = EXAMPLE
            .find(&format!("\n{section}:"))
            .unwrap_or_else(|| panic!("{section}"));
        let end = EXAMPLE[start..]
            .find("\n\n")
            .map_or(EXAMPLE.len(), |length| start + length);
        for key in known_keys::section(at).unwrap().keys() {
            let legacy = at == "memory" && !EXAMPLE[start..end].contains(&format!(" {key}:"))
                || key.starts_with("preserve_recent_skill");
            let named = EXAMPLE[start..end].contains(&format!("{key}:"));
            assert!(named || legacy, "{at}.{key}");
        }
    }
}

#[test]
fn known_keys_of_typed_sections_are_typed() {
    let untyped = [
        "memory.",
        "summarization.preserve_recent_skill",
        "sandbox.mounts",
    ];
    let memory_typed = [
        "enabled",
        "mode",
        "injection_enabled",
        "shutdown_flush_timeout_seconds",
        "manager_class",
        "backend_config",
    ];
    for at in TYPED_SECTIONS {
        for key in known_keys::section(at).unwrap().keys() {
            let path = format!("{}.{key}", at.replace("[]", "[0]"));
            let skipped = untyped.iter().any(|prefix| path.starts_with(prefix));
            if skipped && !(at == "memory" && memory_typed.contains(&key)) {
                continue;
            }
            let mut text = String::new();
            let mut indent = 0;
            for segment in at.split('.') {
                let (name, is_list) = match segment.strip_suffix("[]") {
                    Some(name) => (name, true),
                    None => (segment, false),
                };
                text.push_str(&format!("{}{name}:\n", " ".repeat(indent)));
                indent += 2;
                if is_list {
                    text.push_str(&format!("{}-\n", " ".repeat(indent)));
                    indent += 2;
                }
            }
            text.push_str(&format!("{}{key}: [[[nonsense]]]\n", " ".repeat(indent)));
            let error = load_with(&text, &[]).expect_err(&path).to_string();
            assert!(
                error.contains(&format!("`{path}")) || error.contains("lacks the key"),
                "{path}: {error}"
            );
        }
    }
}

#[test]
fn deerflow_example_warns_only_about_its_samples() {
    let text = include_str!("../../tests/fixtures/deerflow_defaults.yaml");
    let loaded = load_with(text, &[]).unwrap();
    let keys: Vec<_> = loaded
        .warnings
        .into_iter()
        .map(|warning| warning.key)
        .collect();
    assert_eq!(
        keys,
        [
            "extensions.mcp_servers.sample.task_toolsets",
            "safety_finish_reason.detectors"
        ]
    );
    assert_eq!(loaded.config.run_events.backend, RunEventsBackend::Memory);
    assert_eq!(loaded.config.acp_agents["sample"].timeout_seconds, 1800);
    assert_eq!(
        loaded.config.untyped("scheduler").unwrap()["lease_seconds"],
        120
    );
}

#[test]
fn settings_without_effect_are_reported() {
    let cases = [
        (
            "skill_evolution: {enabled: true}\n",
            "skill_evolution.enabled",
        ),
        ("scheduler: {enabled: true}\n", "scheduler.enabled"),
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
            "database: {backend: sqlite}\ncheckpointer: {type: postgres, connection_string: x}\n",
            "checkpointer.type",
        ),
        ("logging: {enhance: {enabled: true}}\n", "logging.enhance"),
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
            "channels: {slack: {enabled: true}}\n",
            "channels.slack.enabled",
        ),
        (
            "channel_connections: {enabled: true}\n",
            "channel_connections.enabled",
        ),
        ("auth: {oidc: {enabled: true}}\n", "auth.oidc.enabled"),
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
        "logging: {enhance: {enabled: true, format: json}}\n",
        "database: {pool_recycle: 300, command_timeout: null, pool_size: 5}\n",
        "skills: {use: \"deerflow.skills.storage.local_skill_storage:LocalSkillStorage\"}\n",
        "skill_scan: {enabled: true}\nchannels: {slack: {enabled: false}}\n",
    ] {
        let text = format!("config_version: {CURRENT_CONFIG_VERSION}\n{text}");
        assert_eq!(load_with(&text, &[]).unwrap().warnings, [], "{text}");
    }
}

#[test]
fn empty_file_error_names_the_file() {
    for text in [
        "",
        " \n\t",
        "# only a comment\n",
        "---\n",
        "null\n",
        "~",
        "\u{feff}",
    ] {
        let error = load_with(text, &[]).unwrap_err();
        assert!(matches!(error, ConfigError::Empty { .. }), "{text:?}");
        assert!(
            error
                .to_string()
                .starts_with("config.yaml contains no settings"),
            "{error}"
        );
    }
    assert!(
        load_with("{}\n", &[]).is_ok(),
        "an empty map is intentional"
    );
}

#[test]
fn authorization_is_rejected_as_not_enforced() {
    let text = "authorization:\n  enabled: true\n";
    assert!(
        refusal(text).starts_with(
            "config.yaml:2:12: `authorization.enabled` is true, but roles are not enforced"
        ),
        "{}",
        refusal(text)
    );
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
fn invalid_value_error_names_location_key_and_allowed() {
    let cases = [
        (
            "title:\n  max_words: 99\n",
            "config.yaml:2:14: `title.max_words` is 99, allowed: 1 to 20",
        ),
        (
            "title:\n  max_words: many\n",
            "config.yaml:2:14: `title.max_words` is \"many\", allowed: a whole number from 0",
        ),
        (
            "title:\n  max_words: -3\n",
            "config.yaml:2:14: `title.max_words` is -3, allowed: a whole number from 0",
        ),
        (
            "title:\n  enabled: perhaps\n",
            "config.yaml:2:12: `title.enabled` is \"perhaps\", allowed: true or false",
        ),
        (
            "title: 5\n",
            "config.yaml:1:8: `title` is 5, allowed: a map",
        ),
        (
            "title: []\n",
            "config.yaml:1:8: `title` is a list, allowed: a map",
        ),
        (
            "models: {}\n",
            "config.yaml:1:9: `models` is a map, allowed: a list",
        ),
        (
            "models:\n  - use: u\n    model: m\n",
            "config.yaml:2:5: `models[0]` lacks the key `name`",
        ),
        (
            "models:\n  - name: a\n    use: 5\n    model: m\n",
            "config.yaml:3:10: `models[0].use` is 5, allowed: text",
        ),
        (
            "database:\n  backend: sqlit\n",
            "config.yaml:2:12: `database.backend` is \"sqlit\", allowed: memory, sqlite, postgres; did you mean `sqlite`?",
        ),
        (
            "log_level: loud\n",
            "config.yaml:1:12: `log_level` is not allowed: found \"loud\", expected one of trace, debug, info, warning, \
             error, critical",
        ),
        (
            "summarization:\n  trigger: soon\n",
            "config.yaml:2:12: `summarization.trigger` is not allowed: `{type: tokens|messages|fraction, value: number}` \
             or a list of them",
        ),
        (
            "acp_agents:\n  a: {description: d}\n",
            "config.yaml:2:6: `acp_agents.a` lacks the key `command`",
        ),
        (
            "acp_agents:\n  a: {command: c, description: d, timeout_seconds: 0}\n",
            "config.yaml:2:52: `acp_agents.a.timeout_seconds` is 0, allowed: 1 to 2592000",
        ),
        (
            "acp_agents:\n  a: {command: c, description: ' '}\n",
            "config.yaml:2:32: `acp_agents.a.description` is empty, allowed: some text",
        ),
        (
            "acp_agents:\n  a: {command: c, description: d, env: {KEY: $NOT_SET}}\n",
            "config.yaml:2:46: `acp_agents.a.env.KEY` refers to the environment variable NOT_SET, which is not set",
        ),
        (
            "sandbox:\n  mounts:\n    - {host_path: /a}\n",
            "config.yaml:3:7: `sandbox.mounts[0]` lacks the key `container_path`",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refusal(text), expected);
    }
}

#[test]
fn all_violations_are_reported_at_once() {
    let text = "title: {max_words: 0}\nsuggestions:\n  max_suggestions: 9\n";
    assert_eq!(
        refusal(text),
        "config.yaml:1:20: `title.max_words` is 0, allowed: 1 to 20\n\
         config.yaml:3:20: `suggestions.max_suggestions` is 9, allowed: 1 to 5"
    );
}

#[test]
fn invalid_yaml_error_names_file_and_line() {
    let error = refusal("title:\n  max_words: [1\nmodels: 5\n");
    assert!(error.starts_with("config.yaml:"), "{error}");
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
fn invalid_value_from_variable_is_not_printed() {
    let error = load_with("title: {max_words: $CANARY}\n", &[("CANARY", "s3cret")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "config.yaml:1:20: `title.max_words` is the value of $CANARY, allowed: a whole number from 0"
    );
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
fn environment_overrides_file() {
    let text = "config_version: 34\ndatabase: {backend: memory, pool_size: 3}\n";
    let variables = [
        ("DEERFLOW_DATABASE__BACKEND", "sqlite"),
        ("DEERFLOW_TITLE__MAX_WORDS", "9"),
        ("DEERFLOW_MODELS", "[{name=a, use=scripted, model=m}]"),
        ("DEERFLOW_WRITE_FILE_MAX_BYTES", "5"),
        ("DEERFLOW_PORT_8001_TCP", "tcp://10.0.0.1:8001"),
        ("DEERFLOW_", "x"),
        ("DEERFLOW_TITLE__", "x"),
    ];
    let loaded = load_with(text, &variables).unwrap();
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.config.database.backend, DatabaseBackend::Sqlite);
    assert_eq!(loaded.config.database.pool_size, 3);
    assert_eq!(loaded.config.title.max_words, 9);
    assert_eq!(loaded.config.models[0].name, "a");
}

#[test]
fn invalid_override_error_names_variable() {
    let cases = [
        (
            ("DEERFLOW_TITLE__MAX_WORDS", "50"),
            "environment variable DEERFLOW_TITLE__MAX_WORDS: `title.max_words` is 50, allowed: 1 to 20",
        ),
        (
            ("DEERFLOW_TITLE__ENABLED", "perhaps"),
            "environment variable DEERFLOW_TITLE__ENABLED: `title.enabled` is \"perhaps\", allowed: true or false",
        ),
    ];
    for (variable, expected) in cases {
        let error = load_with("title: {max_words: 5}\n", &[variable]).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let loaded = load_with("config_version: 34\n", &[("DEERFLOW_TITLE__MAX_WORD", "5")]).unwrap();
    assert_eq!(
        loaded.warnings[0].to_string(),
        "environment variable DEERFLOW_TITLE__MAX_WORD: `title.max_word` is not a known key and has no effect; \
         did you mean `max_words`?"
    );
}

#[test]
fn redis_url_defaults_to_environment() {
    let address = |text: &str, variables: &[(&str, &str)]| {
        let config = load_with(text, variables).unwrap().config;
        config
            .stream_bridge
            .redis_url
            .unwrap()
            .expose_secret()
            .to_owned()
    };
    let text = "stream_bridge: {type: redis}\n";
    assert_eq!(address(text, &[("REDIS_URL", "redis://b")]), "redis://b");
    let both = [
        ("REDIS_URL", "redis://b"),
        ("DEER_FLOW_STREAM_BRIDGE_REDIS_URL", "redis://a"),
    ];
    assert_eq!(address(text, &both), "redis://a");
    assert_eq!(
        address(
            "stream_bridge: {type: redis, redis_url: 'redis://c'}\n",
            &both
        ),
        "redis://c"
    );
    assert!(refusal(text).contains("`stream_bridge.redis_url` is empty"));
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
fn non_utf8_file_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    std::fs::write(&path, b"title: \xff\xfe").unwrap();
    let error = load_file(&path, &Environment::default()).unwrap_err();
    assert!(error.to_string().contains("cannot be read"), "{error}");
}
