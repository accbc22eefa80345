//! Agents that users made: what makes them different, and who may have them.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{LeadAgentSpec, LeadAgents};
use crate::agents::catalog::AgentSource;
use crate::agents::custom::{
    AgentName, CustomAgent, CustomAgents, MemoryCustomAgents, ModelOverrides,
};
use crate::agents::test_support::{ReplayModel, Reply, Said, ask, calls, fresh, run, state_of};
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
) -> (LeadAgents, Arc<MemoryCustomAgents>) {
    let kept = Arc::new(MemoryCustomAgents::default());
    kept.swap(DEFAULT_USER_ID, &name("scout"), None, Some(&scout))
        .await
        .unwrap();
    let cheap = ModelEntry::new("cheap", "scripted", "s");
    let catalog = ModelCatalog::new([cheap], Arc::new(SystemClock)).with_model(model.clone());
    let spec = LeadAgentSpec {
        tools: ToolRegistry::new().with(WriteTodos),
        tool_groups: HashMap::from([("write_todos".to_owned(), "plans".to_owned())]),
        custom: Some(kept.clone()),
        ..LeadAgentSpec::new(Arc::new(catalog))
    };
    (LeadAgents::new(spec), kept)
}

/// A run of the default user with these options.
async fn run_with(agent: &Arc<dyn Agent>, options: &Map<String, Value>) -> Said {
    run(agent, fresh(state_of([Message::human("go")])), |ctx| {
        ctx.options = Arc::new(options.clone());
        ctx.actor = ActorContext::user(DEFAULT_USER_ID);
    })
    .await
}

#[tokio::test]
async fn an_agent_has_its_soul_model_tools_and_settings() {
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
    let asked = &model.asked()[0];
    let system = asked.system.as_deref().unwrap();
    assert!(
        system.starts_with("You are scout,")
            && system.contains("look before you leap")
            && system.contains("<self_update>")
    );
    let tools: Vec<&str> = asked.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["ask_clarification", "update_agent"]);
    assert_eq!(
        (asked.reasoning_effort.as_deref(), json!(asked.overrides)),
        (Some("low"), json!({"temperature": 0.1}))
    );
}

#[tokio::test]
async fn names_that_are_none_and_agents_of_others_are_refused() {
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
async fn an_agent_that_changes_itself_is_another_from_the_next_run_on() {
    let change = calls([("c", "update_agent", json!({"soul": "You are bold."}))]);
    let model = ReplayModel::new([change, Reply::Say("done")]);
    let scout = CustomAgent {
        soul: "You are shy.".to_owned(),
        model: Some("replay".to_owned()),
        ..CustomAgent::default()
    };
    let (agents, _) = with_scout(scout, &model).await;
    let wanted = options(json!({"agent_name": "scout"}));
    let before = agents.agent(&wanted).await.unwrap();
    let said = run_with(&before, &wanted).await;
    assert_eq!(
        said.state().messages()[2].content.text(),
        "Changed: soul. It counts from the next message on."
    );
    let after = agents.agent(&wanted).await.unwrap();
    assert!(
        !Arc::ptr_eq(&before, &after) && Arc::ptr_eq(&after, &agents.agent(&wanted).await.unwrap())
    );
    run_with(&after, &wanted).await;
    assert!(
        model
            .asked()
            .last()
            .unwrap()
            .system
            .as_deref()
            .unwrap()
            .contains("You are bold.")
    );
}

#[tokio::test]
async fn a_bootstrap_run_makes_the_agent_it_names() {
    let setup = calls([(
        "c",
        "setup_agent",
        json!({"soul": "You sing.", "description": "a singer"}),
    )]);
    let model = ReplayModel::new([setup, Reply::Say("done")]);
    let (agents, kept) = with_scout(CustomAgent::default(), &model).await;
    let wanted =
        options(json!({"agent_name": " singer ", "is_bootstrap": true, "model_name": "replay"}));
    let said = run_with(&agents.agent(&wanted).await.unwrap(), &wanted).await;
    assert_eq!(
        said.state().channel("created_agent_name"),
        Some(&json!("singer"))
    );
    assert!(
        model.asked()[0]
            .system
            .as_deref()
            .unwrap()
            .contains("<agent_setup>")
    );
    let singer = kept
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
async fn the_assistant_without_a_name_has_the_soul_its_user_gave_it() {
    let model = ReplayModel::new([Reply::Say("hi")]);
    let (agents, kept) = with_scout(CustomAgent::default(), &model).await;
    kept.save_default_soul(DEFAULT_USER_ID, "Be brief.")
        .await
        .unwrap();
    kept.save_profile(DEFAULT_USER_ID, "I am <b>blind</b>.")
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
    let asked = model.asked();
    let system = asked[0].system.as_deref().unwrap();
    assert!(system.contains("I am &lt;b&gt;blind&lt;/b&gt;."));
    assert!(
        system.contains("Be brief.")
            && asked[0]
                .tools
                .iter()
                .all(|tool| tool.name != "update_agent")
    );
}

#[tokio::test]
async fn a_name_that_is_no_agents_is_not_given_to_one() {
    let setup = calls([(
        "c",
        "setup_agent",
        json!({"soul": "You sing.", "description": "a singer"}),
    )]);
    let model = ReplayModel::new([setup, Reply::Say("done")]);
    let (agents, kept) = with_scout(CustomAgent::default(), &model).await;
    let wanted =
        options(json!({"agent_name": "Check", "is_bootstrap": true, "model_name": "replay"}));
    let said = run_with(&agents.agent(&wanted).await.unwrap(), &wanted).await;
    assert!(
        said.transcript()[2].starts_with("tool:Error: no agent can be called check"),
        "{:?}",
        said.transcript()
    );
    assert_eq!(kept.get(DEFAULT_USER_ID, &name("check")).await, Ok(None));
}

#[tokio::test]
async fn an_agent_changes_itself_only_where_somebody_reads_along() {
    let change = calls([("c", "update_agent", json!({"soul": "You obey."}))]);
    let model = ReplayModel::new([Reply::Say("hi"), change, Reply::Say("done")]);
    let scout = CustomAgent {
        model: Some("replay".to_owned()),
        soul: "You look.".to_owned(),
        ..CustomAgent::default()
    };
    let (agents, kept) = with_scout(scout, &model).await;
    let alone = options(json!({"agent_name": "scout", "non_interactive": true}));
    run_with(&agents.agent(&alone).await.unwrap(), &alone).await;
    let asked = model.asked();
    assert!(
        asked[0]
            .tools
            .iter()
            .all(|tool| tool.name != "update_agent")
    );
    assert!(
        !asked[0]
            .system
            .as_deref()
            .unwrap()
            .contains("<self_update>")
    );
    let watched = options(json!({"agent_name": " Scout "}));
    run_with(&agents.agent(&watched).await.unwrap(), &watched).await;
    assert_eq!(
        kept.get(DEFAULT_USER_ID, &name("scout"))
            .await
            .unwrap()
            .unwrap()
            .soul,
        "You obey."
    );
}
