//! Custom agents: their effect on a run, and access to them.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{LeadAgentSpec, LeadAgents};
use crate::agents::catalog::AgentSource;
use crate::agents::custom::{
    AgentName, CustomAgent, CustomAgents, InMemoryCustomAgents, ModelOverrides,
};
use crate::agents::test_support::{
    ReplayModel, Reply, RunOutput, ask, calls, fresh, run, state_of,
};
use crate::clock::SystemClock;
use crate::messages::Message;
use crate::models::{ModelCatalog, ModelEntry};
use crate::runtime::actor_context::{ActorContext, DEFAULT_USER_ID, scope};
use crate::runtime::agent::{Agent, UnknownAssistant};
use crate::tools::ToolRegistry;
use crate::tools::builtins::WriteTodos;

fn options(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

fn name(text: &str) -> AgentName {
    AgentName::parse(text).unwrap()
}

/// Lead agents whose default user has an agent "scout".
async fn with_scout(
    scout: CustomAgent,
    model: &Arc<ReplayModel>,
) -> (LeadAgents, Arc<InMemoryCustomAgents>) {
    let store = Arc::new(InMemoryCustomAgents::default());
    store
        .swap(DEFAULT_USER_ID, &name("scout"), None, Some(&scout))
        .await
        .unwrap();
    let cheap = ModelEntry::new("cheap", "scripted", "s");
    let catalog = ModelCatalog::new([cheap], Arc::new(SystemClock)).with_model(model.clone());
    let spec = LeadAgentSpec {
        tools: ToolRegistry::new().with(WriteTodos),
        tool_groups: HashMap::from([("write_todos".to_owned(), "plans".to_owned())]),
        custom: Some(store.clone()),
        ..LeadAgentSpec::new(Arc::new(catalog))
    };
    (LeadAgents::new(spec), store)
}

/// Runs an agent for the default user with these options.
async fn run_with(agent: &Arc<dyn Agent>, options: &Map<String, Value>) -> RunOutput {
    run(agent, fresh(state_of([Message::human("go")])), |ctx| {
        ctx.options = Arc::new(options.clone());
        ctx.actor = ActorContext::user(DEFAULT_USER_ID);
    })
    .await
}

#[tokio::test]
async fn custom_agent_uses_its_soul_model_tools_and_settings() {
    let scout = CustomAgent {
        soul: "You look before you leap.".to_owned(),
        model: Some("replay".to_owned()),
        tool_groups: Some(vec!["web".to_owned()]),
        reasoning_effort: Some("low".to_owned()),
        model_settings: Some(ModelOverrides {
            temperature: Some(0.1),
            max_tokens: Some(0),
        }),
        ..CustomAgent::default()
    };
    let model = ReplayModel::new([Reply::Say("hi")]);
    let (agents, _) = with_scout(scout, &model).await;
    ask(
        &agents
            .agent(&options(json!({"agent_name": "Scout"})))
            .await
            .unwrap(),
        "hello",
    )
    .await;
    let request = &model.requests()[0];
    let system = request.system.as_deref().unwrap();
    assert!(
        system.starts_with("You are scout,")
            && system.contains("look before you leap")
            && system.contains("<self_update>")
    );
    let tools: Vec<&str> = request
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(tools, ["ask_clarification", "update_agent"]);
    assert_eq!(
        (
            request.reasoning_effort.as_deref(),
            json!(request.overrides)
        ),
        (Some("low"), json!({"temperature": 0.1}))
    );
}

#[tokio::test]
async fn invalid_names_and_agents_of_other_users_are_rejected() {
    let (agents, _) = with_scout(CustomAgent::default(), &ReplayModel::new([])).await;
    let refused = async |name: &str| {
        agents
            .agent(&options(json!({ "agent_name": name })))
            .await
            .unwrap_err()
    };
    assert_eq!(
        refused("nobody").await,
        UnknownAssistant::NotFound("nobody".to_owned())
    );
    assert!(matches!(
        refused("../scout").await,
        UnknownAssistant::InvalidName(_)
    ));
    let scout = options(json!({"agent_name": "scout"}));
    assert!(agents.agent(&scout).await.is_ok());
    assert_eq!(
        scope(ActorContext::user("bob"), agents.agent(&scout))
            .await
            .unwrap_err(),
        UnknownAssistant::NotFound("scout".to_owned())
    );
}

#[tokio::test]
async fn self_update_takes_effect_in_the_next_run() {
    let change = calls([("c", "update_agent", json!({"soul": "You are bold."}))]);
    let model = ReplayModel::new([change, Reply::Say("done")]);
    let scout = CustomAgent {
        soul: "You are shy.".to_owned(),
        model: Some("replay".to_owned()),
        ..CustomAgent::default()
    };
    let (agents, _) = with_scout(scout, &model).await;
    let options_of_agent = options(json!({"agent_name": "scout"}));
    let before = agents.agent(&options_of_agent).await.unwrap();
    let output = run_with(&before, &options_of_agent).await;
    assert_eq!(
        output.state().messages()[2].content.text(),
        "Changed: soul. It counts from the next message on."
    );
    let after = agents.agent(&options_of_agent).await.unwrap();
    assert!(
        !Arc::ptr_eq(&before, &after)
            && Arc::ptr_eq(&after, &agents.agent(&options_of_agent).await.unwrap())
    );
    run_with(&after, &options_of_agent).await;
    assert!(
        model
            .requests()
            .last()
            .unwrap()
            .system
            .as_deref()
            .unwrap()
            .contains("You are bold.")
    );
}

#[tokio::test]
async fn bootstrap_run_creates_the_named_agent() {
    let setup = calls([(
        "c",
        "setup_agent",
        json!({"soul": "You sing.", "description": "a singer"}),
    )]);
    let model = ReplayModel::new([setup, Reply::Say("done")]);
    let (agents, store) = with_scout(CustomAgent::default(), &model).await;
    let options_of_agent =
        options(json!({"agent_name": " singer ", "is_bootstrap": true, "model_name": "replay"}));
    let output = run_with(
        &agents.agent(&options_of_agent).await.unwrap(),
        &options_of_agent,
    )
    .await;
    assert_eq!(
        output.state().channel("created_agent_name"),
        Some(&json!("singer"))
    );
    assert!(
        model.requests()[0]
            .system
            .as_deref()
            .unwrap()
            .contains("<agent_setup>")
    );
    let singer = store
        .get(DEFAULT_USER_ID, &name("singer"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (singer.soul.as_str(), singer.description.as_str()),
        ("You sing.", "a singer")
    );
}

#[tokio::test]
async fn unnamed_assistant_uses_the_soul_of_its_user() {
    let model = ReplayModel::new([Reply::Say("hi")]);
    let (agents, store) = with_scout(CustomAgent::default(), &model).await;
    store
        .save_default_soul(DEFAULT_USER_ID, "Be brief.")
        .await
        .unwrap();
    store
        .save_profile(DEFAULT_USER_ID, "I am <b>blind</b>.")
        .await
        .unwrap();
    ask(
        &agents
            .agent(&options(json!({"model_name": "replay"})))
            .await
            .unwrap(),
        "hello",
    )
    .await;
    let requests = model.requests();
    let system = requests[0].system.as_deref().unwrap();
    assert!(system.contains("I am &lt;b&gt;blind&lt;/b&gt;."));
    assert!(
        system.contains("Be brief.")
            && requests[0]
                .tools
                .iter()
                .all(|tool| tool.name != "update_agent")
    );
}

#[tokio::test]
async fn setup_agent_rejects_reserved_names() {
    let setup = calls([(
        "c",
        "setup_agent",
        json!({"soul": "You sing.", "description": "a singer"}),
    )]);
    let model = ReplayModel::new([setup, Reply::Say("done")]);
    let (agents, store) = with_scout(CustomAgent::default(), &model).await;
    let options_of_agent =
        options(json!({"agent_name": "Check", "is_bootstrap": true, "model_name": "replay"}));
    let output = run_with(
        &agents.agent(&options_of_agent).await.unwrap(),
        &options_of_agent,
    )
    .await;
    assert!(
        output.transcript()[2].starts_with("tool:Error: no agent can be called check"),
        "{:?}",
        output.transcript()
    );
    assert_eq!(store.get(DEFAULT_USER_ID, &name("check")).await, Ok(None));
}

#[tokio::test]
async fn self_update_requires_an_interactive_run() {
    let change = calls([("c", "update_agent", json!({"soul": "You obey."}))]);
    let model = ReplayModel::new([Reply::Say("hi"), change, Reply::Say("done")]);
    let scout = CustomAgent {
        model: Some("replay".to_owned()),
        soul: "You look.".to_owned(),
        ..CustomAgent::default()
    };
    let (agents, store) = with_scout(scout, &model).await;
    let alone = options(json!({"agent_name": "scout", "non_interactive": true}));
    run_with(&agents.agent(&alone).await.unwrap(), &alone).await;
    let requests = model.requests();
    assert!(
        requests[0]
            .tools
            .iter()
            .all(|tool| tool.name != "update_agent")
    );
    assert!(
        !requests[0]
            .system
            .as_deref()
            .unwrap()
            .contains("<self_update>")
    );
    let watched = options(json!({"agent_name": " Scout "}));
    run_with(&agents.agent(&watched).await.unwrap(), &watched).await;
    assert_eq!(
        store
            .get(DEFAULT_USER_ID, &name("scout"))
            .await
            .unwrap()
            .unwrap()
            .soul,
        "You obey."
    );
}
