//! What the members of a crew are made of.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{Crew, CrewSpec, crew_for, kinds};
use crate::agents::lead::Guards;
use crate::clock::SystemClock;
use crate::config::{SubagentsConfig, ToolSearchConfig};
use crate::models::{AsideModels, Breakers, ModelCatalog, RetryPolicy, ScriptedModel};
use crate::tools::{Tool, ToolContext, ToolError, ToolOutput, ToolRegistry, ToolSet, erase};

struct Named(&'static str);

#[derive(Debug, Deserialize, JsonSchema)]
struct Nothing {}

impl Tool for Named {
    type Args = Nothing;

    fn name(&self) -> &str {
        self.0
    }

    fn description(&self) -> &str {
        "Does nothing."
    }

    async fn call(&self, _args: Nothing, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok("".into())
    }
}

/// The crew of a lead agent with the model `big` and these tools.
fn crew<const N: usize>(section: Value, tools: [&'static str; N]) -> Crew {
    crew_with(
        section,
        tools,
        &ToolSet::default(),
        &ToolSearchConfig::default(),
    )
}

fn crew_with<const N: usize>(
    section: Value,
    tools: [&'static str; N],
    live: &ToolSet,
    tool_search: &ToolSearchConfig,
) -> Crew {
    let config: SubagentsConfig = serde_json::from_value(section).unwrap();
    let catalog = ["big", "small"].map(|name| Arc::new(ScriptedModel::new(name, name)));
    let catalog = catalog.into_iter().fold(
        ModelCatalog::new([], Arc::new(SystemClock)),
        |all, model| all.with_model(model),
    );
    let spec = CrewSpec {
        models: AsideModels {
            catalog: Arc::new(catalog),
            breakers: Arc::new(Breakers::default()),
            retry: RetryPolicy::default(),
        },
        inherited: "big",
        tools: &tools
            .into_iter()
            .fold(ToolRegistry::new(), |all, tool| all.with(Named(tool))),
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
    crew_for(kinds(&config, false), &spec)
}

fn tools_of(crew: &Crew, kind: &str) -> Vec<String> {
    let nodes = crew.get(kind).unwrap().agent.graph().nodes;
    nodes
        .into_iter()
        .find(|node| node.name == "tools")
        .unwrap()
        .tools
}

#[test]
fn commands_have_a_kind_of_their_own_where_they_can_be_run() {
    let without = crew(json!({}), ["ls", "web_search"]);
    assert_eq!(
        without
            .kinds()
            .map(|kind| kind.name.as_str())
            .collect::<Vec<_>>(),
        ["general-purpose"]
    );
    let with = crew(
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
fn members_look_for_tools_that_come_and_go_as_their_lead_agent_does() {
    let live = ToolSet::new(1, vec![erase(Named("git_log")), erase(Named("git_push"))]);
    let entry = json!({"description": "d", "system_prompt": "p", "disallowed_tools": ["git_push"]});
    let section = json!({"custom_agents": {"a": entry}});
    let tools = |enabled: bool| {
        let crew = crew_with(
            section.clone(),
            ["ls"],
            &live,
            &serde_json::from_value(json!({"enabled": enabled})).unwrap(),
        );
        tools_of(&crew, "a")
    };
    assert_eq!(tools(false), ["ls", "git_log"]);
    assert_eq!(tools(true), ["ls", "tool_search", "git_log"]);
}

#[test]
fn a_member_has_its_own_model_or_that_of_its_lead_agent() {
    let entry = |model: &str| json!({"description": "d", "system_prompt": "p", "model": model});
    let section = json!({
        "agents": {"general-purpose": {"model": "small"}},
        "custom_agents": {"a": entry("small"), "b": entry("inherit"), "c": entry("nowhere")},
    });
    let crew = crew(section, []);
    let models: Vec<_> = crew
        .kinds()
        .map(|kind| {
            (
                kind.name.as_str(),
                crew.get(&kind.name).unwrap().model.as_str(),
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
fn a_custom_member_may_hand_over_files_where_its_entry_says_so() {
    let entry = json!({"description": "d", "system_prompt": "p", "disallowed_tools": ["ls"]});
    let crew = crew(
        json!({"custom_agents": {"a": entry}}),
        ["ls", "present_files", "task"],
    );
    assert_eq!(tools_of(&crew, "a"), ["present_files"]);
}
