//! Lead agent settings and tools derived from the configuration.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use secrecy::ExposeSecret;

use super::spec::LeadAgentSpec;
use crate::agents::guards::Guards;
use crate::config::{AppConfig, SandboxConfig, ToolConfig};
use crate::models::{AuxiliaryModels, BreakerPolicy, Breakers, ModelCatalog, RetryPolicy};
use crate::sandbox::{CommandSandbox, FileHome, Secrets};
use crate::tools::builtins::{Bash, Glob, Grep, Ls, ReadFile, StrReplace, WriteFile};
use crate::tools::{DynTool, erase};

/// File tools of agents if the configuration lists no tools.
pub const DEFAULT_FILE_TOOLS: [&str; 4] = ["ls", "read_file", "write_file", "str_replace"];

/// Kinds of all file tools.
pub const FILE_TOOLS: [&str; 6] = [
    "ls",
    "glob",
    "grep",
    "read_file",
    "write_file",
    "str_replace",
];

/// Returns the models of a catalog with the configured limits, retries and circuit breakers; all
/// circuits are closed.
pub fn configured_models(config: &AppConfig, catalog: ModelCatalog) -> AuxiliaryModels {
    AuxiliaryModels {
        catalog: Arc::new(
            catalog
                .with_default_concurrency(config.llm_call.max_concurrent_calls)
                .with_default_answer_limit(config.llm_call.max_answer_bytes),
        ),
        breakers: Arc::new(Breakers::new(BreakerPolicy::from(&config.circuit_breaker))),
        retry: RetryPolicy::from(&config.llm_call),
    }
}

impl LeadAgentSpec {
    /// Creates the specification of a lead agent with these models from the configuration. Stores,
    /// files, skills and tools are set by the caller.
    pub fn configured(config: &AppConfig, models: &AuxiliaryModels) -> Self {
        Self {
            retry: models.retry,
            breakers: models.breakers.clone(),
            tool_groups: groups(&config.tools),
            tool_search: config.tool_search.clone(),
            defers_skills: config.skills.deferred_discovery,
            title: config.title.clone(),
            guards: Guards::from(config),
            summarization: config.summarization.clone(),
            ..Self::new(models.catalog.clone())
        }
    }
}

/// Builds the file tool of this kind; `None` if there is no such kind.
pub fn file_tool(kind: &str, config: &AppConfig, home: &FileHome) -> Option<Arc<dyn DynTool>> {
    let home = home.clone();
    match kind {
        "ls" => Some(erase(Ls {
            home,
            max_chars: config.sandbox.ls_output_max_chars,
        })),
        "glob" => Some(erase(Glob {
            home,
            max_results: max_results(config, kind),
        })),
        "grep" => Some(erase(Grep {
            home,
            max_results: max_results(config, kind),
        })),
        "read_file" => Some(erase(ReadFile {
            home,
            max_chars: config.sandbox.read_file_output_max_chars,
        })),
        "write_file" => Some(erase(WriteFile { home })),
        "str_replace" => Some(erase(StrReplace { home })),
        _ => None,
    }
}

/// Returns `max_results` of the first entry of this kind, if it is a number above 0.
fn max_results(config: &AppConfig, kind: &str) -> Option<usize> {
    let entry = config.tools.iter().find(|entry| kind_of(entry) == kind)?;
    let number = entry.extra.get("max_results")?.as_u64()?;
    usize::try_from(number).ok().filter(|number| *number > 0)
}

/// Builds the tool for commands, with the configured limits. It redacts the values of configured
/// environment variables from its output.
pub fn bash_tool(
    sandbox: Arc<dyn CommandSandbox>,
    config: &AppConfig,
    home: &FileHome,
) -> Arc<dyn DynTool> {
    let SandboxConfig {
        bash_command_timeout,
        bash_output_max_chars,
        ..
    } = config.sandbox;
    let secrets = Secrets::new(
        config
            .sandbox
            .environment
            .values()
            .map(|value| value.expose_secret()),
    );
    let bash = Bash::new(
        home.clone(),
        sandbox,
        Duration::from_secs(bash_command_timeout),
        bash_output_max_chars,
    );
    erase(bash.without(secrets))
}

/// Returns the kind of tool that an entry names, as a kind (`sandbox.ls`) or as an older class path
/// (`deerflow.sandbox.tools:ls_tool`).
pub fn kind_of(entry: &ToolConfig) -> &str {
    let path = entry.implementation.as_str();
    let older = path
        .split_once("sandbox.tools:")
        .map(|(_, name)| name.trim_end_matches("_tool"));
    older
        .or_else(|| path.strip_prefix("sandbox."))
        .unwrap_or(path)
}

/// Maps each tool to its group; the first of several entries wins. Tools are keyed by the name that
/// agents use, not by the name of the entry.
fn groups(entries: &[ToolConfig]) -> HashMap<String, String> {
    entries
        .iter()
        .rev()
        .map(|entry| (tool_name(entry).to_owned(), entry.group.clone()))
        .collect()
}

#[cfg(feature = "web")]
fn tool_name(entry: &ToolConfig) -> &str {
    crate::tools::web::name_of(&entry.implementation).unwrap_or_else(|| kind_of(entry))
}

#[cfg(not(feature = "web"))]
fn tool_name(entry: &ToolConfig) -> &str {
    kind_of(entry)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(path: &str, group: &str) -> ToolConfig {
        serde_json::from_value(serde_json::json!({ "name": "x", "group": group, "use": path }))
            .unwrap()
    }

    #[cfg(feature = "web")]
    #[test]
    fn tools_are_grouped_by_their_agent_facing_names() {
        let groups = groups(&[
            entry("deerflow.sandbox.tools:read_file_tool", "files"),
            entry("deerflow.community.exa.tools:web_search_tool", "web"),
        ]);
        let expected = [("read_file", "files"), ("web_search", "web")]
            .map(|(tool, group)| (tool.to_owned(), group.to_owned()));
        assert_eq!(groups, HashMap::from(expected));
    }

    #[test]
    fn max_results_of_file_searches_is_configured() {
        let glob = |more| json!({"name": "glob", "group": "g", "use": "sandbox.glob", "max_results": more});
        for (value, expected) in [(json!(7), Some(7)), (json!(0), None), (json!("x"), None)] {
            let config: AppConfig =
                serde_json::from_value(json!({"tools": [glob(value)]})).unwrap();
            assert_eq!(max_results(&config, "glob"), expected);
            assert_eq!(max_results(&config, "grep"), None);
        }
    }

    #[test]
    fn kinds_and_legacy_paths_name_the_same_tools() {
        for (path, kind) in [
            ("sandbox.read_file", "read_file"),
            ("deerflow.sandbox.tools:read_file_tool", "read_file"),
            ("src.sandbox.tools:ls_tool", "ls"),
            ("sandbox.bash", "bash"),
            ("bash", "bash"),
            (
                "deerflow.community.tavily.tools:web_search_tool",
                "deerflow.community.tavily.tools:web_search_tool",
            ),
        ] {
            assert_eq!(kind_of(&entry(path, "g")), kind);
        }
    }
}
