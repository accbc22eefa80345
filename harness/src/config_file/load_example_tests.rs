//! Tests that the example configuration names every typed key, and loads.

use super::*;

/// Sections in which every key has a type.
const TYPED_SECTIONS: [&str; 39] = [
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
    "flows",
    "flows.adapters.pi-mono",
    "auth",
    "auth.local",
    "auth.oidc",
    "runs",
    "limits",
    "quotas",
    "fair_permits",
    "fair_permits.weights",
    "testing",
    "tools[]",
    "tool_groups[]",
];

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
        "DEEPSEEK_API_KEY",
        "DATABASE_URL",
        "REDIS_URL",
        "OIDC_SECRET",
        "TOKEN",
        "PROVISIONER_API_KEY",
        "DEERFLOW_WEBHOOK_SECRET",
        "TELEGRAM_BOT_TOKEN",
        "SLACK_BOT_TOKEN",
        "SLACK_APP_TOKEN",
        "FEISHU_APP_ID",
        "FEISHU_APP_SECRET",
        "DISCORD_BOT_TOKEN",
        "DINGTALK_CLIENT_ID",
        "DINGTALK_CLIENT_SECRET",
        "WECOM_BOT_ID",
        "WECOM_BOT_SECRET",
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
fn example_contains_every_key_of_channels() {
    let start = EXAMPLE.find("\nchannels:").unwrap();
    let end = EXAMPLE[start..].find("\n# Webhooks").unwrap();
    let text = &EXAMPLE[start..start + end];
    let platforms = [
        "telegram", "slack", "feishu", "discord", "dingtalk", "wecom",
    ];
    for at in platforms.map(|platform| format!("channels.{platform}")) {
        for key in known_keys::section(&at).unwrap().keys() {
            assert!(text.contains(&format!(" {key}:")), "{at}.{key}");
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
