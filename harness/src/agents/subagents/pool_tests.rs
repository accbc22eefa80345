//! Models, tools and middlewares of pooled subagents.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{SubagentPool, SubagentPoolSpec, build_pool, kinds};
use crate::agents::lead::Guards;
use crate::clock::SystemClock;
use crate::config::{SubagentsConfig, ToolSearchConfig};
use crate::models::{AuxiliaryModels, Breakers, ModelCatalog, RetryPolicy, ScriptedModel};
use crate::tools::{Tool, ToolContext, ToolError, ToolOutput, ToolRegistry, ToolSet, erase};

struct NamedTool(&'static str);

#[derive(Debug, Deserialize, JsonSchema)]
struct NoArgs {}

impl Tool for NamedTool {
    type Args = NoArgs;

    fn name(&self) -> &str {
        self.0
    }

    fn description(&self) -> &str {
        "Does nothing."
    }

    async fn call(&self, _args: NoArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok("".into())
    }
}

/// Pool of a lead agent with the model `big` and these tools.
fn pool<const N: usize>(section: Value, tools: [&'static str; N]) -> SubagentPool {
    pool_with(
        section,
        tools,
        &ToolSet::default(),
        &ToolSearchConfig::default(),
    )
}

fn pool_with<const N: usize>(
    section: Value,
    tools: [&'static str; N],
    live: &ToolSet,
    tool_search: &ToolSearchConfig,
) -> SubagentPool {
    let config: SubagentsConfig = serde_json::from_value(section).unwrap();
    let catalog = ["big", "small"].map(|name| Arc::new(ScriptedModel::new(name, name)));
    let catalog = catalog.into_iter().fold(
        ModelCatalog::new([], Arc::new(SystemClock)),
        |all, model| all.with_model(model),
    );
    let spec = SubagentPoolSpec {
        models: AuxiliaryModels {
            catalog: Arc::new(catalog),
            breakers: Arc::new(Breakers::default()),
            retry: RetryPolicy::default(),
        },
        inherited: "big",
        tools: &tools
            .into_iter()
            .fold(ToolRegistry::new(), |all, tool| all.with(NamedTool(tool))),
        live,
        tool_search,
        files: None,
        skills: None,
        defers_skills: false,
        guards: &Guards::default(),
        summarization: &Default::default(),
        middlewares: &[],
        room: Arc::new(Semaphore::new(1)),
    };
    build_pool(kinds(&config, false), &spec)
}

fn tools_of(pool: &SubagentPool, kind: &str) -> Vec<String> {
    let nodes = pool.get(kind).unwrap().agent.graph().nodes;
    nodes
        .into_iter()
        .find(|node| node.name == "tools")
        .unwrap()
        .tools
}

#[test]
fn bash_kind_exists_only_with_the_bash_tool() {
    let without = pool(json!({}), ["ls", "web_search"]);
    assert_eq!(
        without
            .kinds()
            .map(|kind| kind.name.as_str())
            .collect::<Vec<_>>(),
        ["general-purpose"]
    );
    let with = pool(
        json!({}),
        [
            "bash",
            "ls",
            "web_search",
            "present_files",
            "ask_clarification",
        ],
    );
    assert_eq!(tools_of(&with, "bash"), ["bash", "ls"]);
    assert_eq!(
        tools_of(&with, "general-purpose"),
        ["bash", "ls", "web_search"]
    );
}

#[test]
fn subagents_search_deferred_tools_like_their_lead() {
    let live = ToolSet::new(
        1,
        vec![erase(NamedTool("git_log")), erase(NamedTool("git_push"))],
    );
    let entry = json!({"description": "d", "system_prompt": "p", "disallowed_tools": ["git_push"]});
    let section = json!({"custom_agents": {"a": entry}});
    let tools = |enabled: bool| {
        let pool = pool_with(
            section.clone(),
            ["ls"],
            &live,
            &serde_json::from_value(json!({"enabled": enabled})).unwrap(),
        );
        tools_of(&pool, "a")
    };
    assert_eq!(tools(false), ["ls", "git_log"]);
    assert_eq!(tools(true), ["ls", "tool_search", "git_log"]);
}

#[test]
fn subagent_uses_its_own_model_or_the_lead_model() {
    let entry = |model: &str| json!({"description": "d", "system_prompt": "p", "model": model});
    let section = json!({
        "agents": {"general-purpose": {"model": "small"}},
        "custom_agents": {"a": entry("small"), "b": entry("inherit"), "c": entry("nowhere")},
    });
    let pool = pool(section, []);
    let models: Vec<_> = pool
        .kinds()
        .map(|kind| {
            (
                kind.name.as_str(),
                pool.get(&kind.name).unwrap().model.as_str(),
            )
        })
        .collect();
    assert_eq!(
        models,
        [
            ("general-purpose", "small"),
            ("a", "small"),
            ("b", "big"),
            ("c", "big")
        ]
    );
}

#[test]
fn custom_subagent_may_present_files_if_configured() {
    let entry = json!({"description": "d", "system_prompt": "p", "disallowed_tools": ["ls"]});
    let pool = pool(
        json!({"custom_agents": {"a": entry}}),
        ["ls", "present_files", "task"],
    );
    assert_eq!(tools_of(&pool, "a"), ["present_files"]);
}
