//! Finds classes and kinds that a configuration names and that this build does not support.

use harness::agents::lead::{FILE_TOOLS, kind_of};
use harness::config::{AppConfig, ToolConfig};
use harness::middlewares::guardrail::policy_config_error;
use harness::models::ProviderKind;
use harness::tools::web::name_of;

/// Setting that names an unknown class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingClass {
    /// Section: `tools`, `models`, `sandbox`, `guardrails` or `memory`.
    pub section: &'static str,
    /// Dotted key, its value, and the consequence.
    pub problem: String,
}

/// Returns the last part of a class path.
fn class(path: &str) -> &str {
    path.rsplit([':', '.']).next().unwrap_or_default()
}

fn is_tool(entry: &ToolConfig) -> bool {
    let kind = kind_of(entry);
    kind == "bash" || FILE_TOOLS.contains(&kind) || name_of(&entry.implementation).is_some()
}

/// Returns every class and kind in `config` that this build does not support.
pub fn missing_classes(config: &AppConfig) -> Vec<MissingClass> {
    let mut missing = Vec::new();
    let mut add = |section, key: &str, named: &str, reason: &str| {
        missing.push(MissingClass {
            section,
            problem: format!("`{key}` is `{named}`, which {reason}"),
        });
    };
    for (at, model) in config.models.iter().enumerate() {
        if ProviderKind::parse(&model.provider).is_err() {
            let reason = format!(
                "is not a provider of this build: the model `{}` cannot be used",
                model.name
            );
            add(
                "models",
                &format!("models[{at}].use"),
                &model.provider,
                &reason,
            );
        }
    }
    for (at, tool) in config
        .tools
        .iter()
        .enumerate()
        .filter(|(_, tool)| !is_tool(tool))
    {
        let reason = format!("is not a tool of this build: `{}` is disabled", tool.name);
        add(
            "tools",
            &format!("tools[{at}].use"),
            &tool.implementation,
            &reason,
        );
    }
    let sandbox = config.sandbox.provider.as_str();
    if !matches!(
        class(sandbox),
        "local" | "aio" | "LocalSandboxProvider" | "AioSandboxProvider"
    ) {
        add(
            "sandbox",
            "sandbox.use",
            sandbox,
            "is not a sandbox of this build: commands run as with `local`",
        );
    }
    let manager = config.memory.manager_class.as_str();
    if config.memory.enabled
        && !["deermem", "noop"]
            .iter()
            .any(|known| manager.to_lowercase().contains(known))
    {
        add(
            "memory",
            "memory.manager_class",
            manager,
            "is not a memory manager of this build: memory is disabled",
        );
    }
    if let (true, Some(provider)) = (config.guardrails.enabled, &config.guardrails.provider)
        && let Some(failure) = policy_config_error(provider)
    {
        let follows = if config.guardrails.fail_closed {
            "all tool calls are denied"
        } else {
            "all tool calls are allowed"
        };
        add(
            "guardrails",
            "guardrails.provider.use",
            &provider.kind,
            &format!("cannot decide: {failure}; {follows}"),
        );
    }
    missing
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn found(config: Value) -> Vec<String> {
        let config: AppConfig = serde_json::from_value(config).unwrap();
        missing_classes(&config)
            .into_iter()
            .map(|missing| missing.problem)
            .collect()
    }

    #[test]
    fn every_unknown_class_is_reported() {
        let tool = |path: &str| json!({"tools": [{"name": "t", "group": "g", "use": path}]});
        for (config, key) in [
            (
                tool("my.tools:search_tool"),
                "`tools[0].use` is `my.tools:search_tool`",
            ),
            (tool("sandbox.rm"), "`tools[0].use` is `sandbox.rm`"),
            (tool("tavily.web_crawl"), "`tools[0].use`"),
            (
                json!({"models": [{"name": "m", "use": "my.models:Chat", "model": "x"}]}),
                "`models[0].use` is `my.models:Chat`",
            ),
            (
                json!({"sandbox": {"use": "my.sandbox:MySandboxProvider"}}),
                "`sandbox.use`",
            ),
            (
                json!({"memory": {"manager_class": "mem0"}}),
                "`memory.manager_class` is `mem0`",
            ),
            (
                json!({"guardrails": {"enabled": true, "provider": {"use": "my.rules:Oap"}}}),
                "`guardrails.provider.use` is `my.rules:Oap`",
            ),
        ] {
            let found = found(config.clone());
            assert!(
                found.len() == 1 && found[0].starts_with(key),
                "{config}: {found:?}"
            );
        }
    }

    #[test]
    fn known_classes_are_not_reported() {
        let tools: Vec<Value> = [
            "bash",
            "sandbox.ls",
            "deerflow.sandbox.tools:grep_tool",
            "deerflow.community.tavily.tools:web_search_tool",
            "direct.web_fetch",
        ]
        .map(|path| json!({"name": "t", "group": "g", "use": path}))
        .into();
        let rules = json!({"enabled": true, "provider": {"use": "rules", "config": {"file": "rules.yaml"}}});
        let models = json!([{"name": "m", "use": "langchain_openai:ChatOpenAI", "model": "x"}]);
        for sandbox in [
            "local",
            "deerflow.sandbox.local:LocalSandboxProvider",
            "deerflow.community.aio_sandbox:AioSandboxProvider",
        ] {
            let config = json!({"tools": tools, "models": models, "guardrails": rules, "sandbox": {"use": sandbox}});
            assert_eq!(found(config), [""; 0], "{sandbox}");
        }
    }
}
