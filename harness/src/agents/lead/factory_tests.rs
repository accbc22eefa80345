//! Lead agents as they are put together, and what a conversation with one leaves.

use futures_util::FutureExt;
use serde_json::json;

use super::*;
use crate::agents::test_support::{ReplayModel, Reply, ask, calls, fresh, run, state_of};
use crate::clock::SystemClock;
use crate::config::ToolSearchConfig;
use crate::messages::{Message, kwargs};
use crate::models::{ModelCatalog, ModelEntry, ModelError, ModelErrorKind, ScriptedModel};
use crate::sandbox::FileHome;
use crate::tools::ToolSource;

fn agents(models: Vec<ModelEntry>) -> LeadAgents {
    LeadAgents::new(LeadAgentSpec::new(Arc::new(ModelCatalog::new(
        models,
        Arc::new(SystemClock),
    ))))
}

fn with_model(model: Arc<ReplayModel>) -> Arc<dyn Agent> {
    let catalog = ModelCatalog::new([], Arc::new(SystemClock)).with_model(model);
    LeadAgents::new(LeadAgentSpec::new(Arc::new(catalog)))
        .agent(&Map::new())
        .now_or_never()
        .unwrap()
        .unwrap()
}

fn options(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

#[test]
fn equal_options_share_an_agent_and_unknown_models_are_refused() {
    let agents = agents(vec![
        ModelEntry::new("a", "scripted", "s"),
        ModelEntry::new("b", "scripted", "s"),
    ]);
    let agent = |value| agents.agent(&options(value)).now_or_never().unwrap();
    assert!(Arc::ptr_eq(
        &agent(json!({})).unwrap(),
        &agent(json!({"thread_id": "x"})).unwrap()
    ));
    assert!(!Arc::ptr_eq(
        &agent(json!({})).unwrap(),
        &agent(json!({"model_name": "b"})).unwrap()
    ));
    assert_eq!(
        agent(json!({"model": "c"})).unwrap_err(),
        UnknownAssistant::UnknownModel("c".to_owned())
    );
    for effort in 0..200 {
        agent(json!({"reasoning_effort": effort.to_string()})).unwrap();
    }
    assert!(agents.built.lock().len() <= MOST_KEPT);
}

#[test]
fn a_configuration_without_models_says_so() {
    assert!(matches!(
        agents(vec![])
            .agent(&Map::new())
            .now_or_never()
            .unwrap()
            .unwrap_err(),
        UnknownAssistant::Unusable { .. }
    ));
}

#[tokio::test]
async fn a_conversation_is_stamped_and_named() {
    let said = ask(
        &with_model(ReplayModel::new([Reply::Say("hello")])),
        "what is the capital of the old kingdom of France, which was one of many",
    )
    .await;
    let human = &said.state().messages()[0];
    assert_eq!(
        (human.id.as_deref(), human.name.as_deref()),
        (Some("h0"), Some("user-input"))
    );
    assert_eq!(human.additional_kwargs["run_id"], "run");
    assert_eq!(
        human.additional_kwargs["timestamp"],
        "2027-01-15T08:00:00.000000+00:00"
    );
    assert_eq!(
        said.state().title(),
        Some("what is the capital of the old kingdom of France,...")
    );
    assert_eq!(
        said.state().channel("thread_data").unwrap()["uploads_path"],
        "/mnt/user-data/uploads"
    );
    assert_eq!(
        said.nodes(),
        [
            "ThreadDataMiddleware.before_agent",
            "model",
            "TitleMiddleware.after_model"
        ]
    );
    assert_eq!(
        said.steps().iter().filter(|step| step.checkpoint).count(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_fails_for_good_leaves_an_answer_that_says_so() {
    let error = ModelError {
        model: "replay".to_owned(),
        kind: ModelErrorKind::Transient,
        message: "connection refused".to_owned(),
        status: None,
        retry_after: None,
    };
    let model = ReplayModel::new([Reply::Fail(error)]);
    let said = ask(&with_model(model.clone()), "hi").await;
    assert_eq!(model.asked().len(), 3, "tried again");
    assert!(said.outcome.is_ok());
    let last = said.state().messages().last().unwrap();
    assert!(last.flag(kwargs::ERROR_FALLBACK));
    assert_eq!(last.additional_kwargs["error_reason"], "transient");
    assert!(
        last.additional_kwargs["error_detail"]
            .as_str()
            .unwrap()
            .contains("connection refused")
    );
    let retries = said
        .events
        .iter()
        .filter(|event| matches!(event, crate::runtime::agent::AgentEvent::Custom(_)))
        .count();
    assert_eq!(retries, 2);
    let shown =
        said.events.iter().filter(|event| matches!(event, crate::runtime::agent::AgentEvent::Message(message, _) if message.is_ai()));
    assert_eq!(shown.count(), 1, "viewers of messages read it too");
}

#[tokio::test]
async fn what_was_read_of_an_answer_that_broke_off_stays_beside_the_text_that_says_so() {
    use crate::runtime::agent::AgentEvent;
    let said = ask(
        &with_model(ReplayModel::new([Reply::Cut("half an ans")])),
        "hi",
    )
    .await;
    assert!(said.outcome.is_ok());
    let [_, partial, fallback] = said.state().messages() else {
        panic!("{:?}", said.transcript())
    };
    assert_eq!(partial.content.text(), "half an ans");
    assert!(partial.flag(kwargs::INCOMPLETE) && fallback.flag(kwargs::ERROR_FALLBACK));
    let streamed = said.events.iter().find_map(|event| {
        if let AgentEvent::Token(chunk, _) = event {
            Some(&chunk.id)
        } else {
            None
        }
    });
    assert_eq!(partial.id.as_ref(), streamed);
    let journaled: Vec<&Message> = said
        .events
        .iter()
        .filter_map(|event| {
            if let AgentEvent::ModelCall(call) = event {
                Some(&call.message)
            } else {
                None
            }
        })
        .collect();
    assert_eq!(journaled, [partial, fallback]);
    let shown =
        |event: &&AgentEvent| matches!(event, AgentEvent::Message(message, _) if message.is_ai());
    assert_eq!(
        said.events.iter().filter(shown).count(),
        1,
        "the part was read as tokens"
    );
}

#[tokio::test]
async fn a_thread_that_was_cut_off_in_a_tool_is_sent_with_a_result_for_every_call() {
    let calling = with_model(ReplayModel::new([
        calls([("a", "nothing", json!({}))]),
        Reply::Say("done"),
    ]));
    let said = ask(&calling, "go").await;
    let called = said
        .steps()
        .into_iter()
        .find(|step| step.node == "model")
        .unwrap()
        .state
        .messages()[1]
        .clone();
    let model = ReplayModel::new([Reply::Say("ok")]);
    let state = state_of([Message::human("go"), called, Message::human("and now?")]);
    run(&with_model(model.clone()), fresh(state), |_| {}).await;
    let sent: Vec<&str> = model.asked()[0]
        .messages
        .iter()
        .map(Message::type_name)
        .collect();
    assert_eq!(sent, ["human", "ai", "tool", "human"]);
}

#[test]
fn only_runs_with_a_person_can_ask() {
    let catalog =
        ModelCatalog::new([], Arc::new(SystemClock)).with_model(Arc::new(ScriptedModel::default()));
    let agents = LeadAgents::new(LeadAgentSpec::new(Arc::new(catalog)));
    assert!(LeadOptions::read(&Map::new()).interactive);
    let alone = agents
        .agent(&options(json!({"non_interactive": true})))
        .now_or_never()
        .unwrap()
        .unwrap();
    assert!(!Arc::ptr_eq(
        &alone,
        &agents.agent(&Map::new()).now_or_never().unwrap().unwrap()
    ));
}

#[test]
fn with_everything_on_the_chain_is_the_order_without_strangers() {
    let catalog =
        ModelCatalog::new([], Arc::new(SystemClock)).with_model(Arc::new(ScriptedModel::default()));
    let mut spec = LeadAgentSpec::new(Arc::new(catalog));
    spec.files = Some(FileHome::new(
        std::path::Path::new("/nowhere"),
        crate::sandbox::FileLimits::default(),
    ));
    spec.guards.guardrails =
        serde_json::from_value(json!({"enabled": true, "provider": {"use": "allowlist"}})).unwrap();
    spec.guards.token_budget.enabled = true;
    spec.summarization.enabled = true;
    let agents = LeadAgents::new(spec);
    let chain = agents.middlewares(
        &LeadOptions::read(&options(json!({"is_plan_mode": true}))),
        &Persona::default(),
        &AgentSkills::default(),
        "m",
        &ToolRegistry::new(),
    );
    let names: Vec<&str> = chain.iter().map(|middleware| middleware.name()).collect();
    let known: Vec<&str> = order::ORDER
        .iter()
        .copied()
        .filter(|name| names.contains(name))
        .collect();
    assert_eq!(names, known, "each stands at its place, once");
    let missing: Vec<&str> = order::ORDER
        .iter()
        .copied()
        .filter(|name| !names.contains(name))
        .collect();
    assert_eq!(
        missing,
        [
            "SkillsMiddleware",
            "MemoryMiddleware",
            "SubagentUsageMiddleware",
            "ViewImageMiddleware",
            "SubagentLimitMiddleware",
            "*"
        ],
        "which need skills, a store of memories, `view_image` and `task`"
    );
}

/// Tools that a test changes.
#[derive(Debug, Default)]
struct Changing(Mutex<Arc<ToolSet>>);

#[async_trait]
impl ToolSource for Changing {
    async fn tools(&self) -> Arc<ToolSet> {
        self.0.lock().clone()
    }
}

/// A tool of any name.
struct Named(&'static str);

impl crate::tools::Tool for Named {
    type Args = Map<String, Value>;

    fn name(&self) -> &str {
        self.0
    }

    fn description(&self) -> &str {
        "live"
    }

    async fn call(
        &self,
        _args: Self::Args,
        _ctx: &crate::tools::ToolContext,
    ) -> Result<crate::tools::ToolOutput, crate::tools::ToolError> {
        Ok("live".into())
    }
}

#[tokio::test]
async fn tools_that_change_call_for_a_new_agent_and_take_no_others_place() {
    let (model, source) = (
        ReplayModel::new([Reply::Say("hello")]),
        Arc::new(Changing::default()),
    );
    let catalog = ModelCatalog::new([], Arc::new(SystemClock)).with_model(model.clone());
    let live_tools = Some(source.clone() as Arc<dyn ToolSource>);
    let agents = LeadAgents::new(LeadAgentSpec {
        live_tools,
        ..LeadAgentSpec::new(Arc::new(catalog))
    });
    let set = |version, names: &[&'static str]| {
        *source.0.lock() = Arc::new(ToolSet::new(
            version,
            names.iter().map(|name| erase(Named(name))).collect(),
        ));
    };
    let before = agents.agent(&Map::new()).await.unwrap();
    set(1, &["live_tool", ASK_CLARIFICATION]);
    let after = agents.agent(&Map::new()).await.unwrap();
    assert!(
        !Arc::ptr_eq(&before, &after)
            && Arc::ptr_eq(&after, &agents.agent(&Map::new()).await.unwrap())
    );
    assert_eq!(
        agents.built.lock().len(),
        1,
        "nobody asks for the agent before any more"
    );
    ask(&after, "hi").await;
    let offered: Vec<(String, bool)> = model.asked()[0]
        .tools
        .iter()
        .map(|tool| (tool.name.clone(), tool.description == "live"))
        .collect();
    assert_eq!(
        offered,
        [
            (ASK_CLARIFICATION.to_owned(), false),
            ("live_tool".to_owned(), true)
        ]
    );
}

#[tokio::test]
async fn deferred_tools_are_offered_once_the_thread_has_found_them() {
    let call = calls([("c1", "tool_search", json!({"query": "select:live_tool"}))]);
    let blind = calls([("c0", "live_tool", json!({}))]);
    let model = ReplayModel::new([blind, call, Reply::Say("done")]);
    let catalog = ModelCatalog::new([], Arc::new(SystemClock)).with_model(model.clone());
    let source = Changing(Mutex::new(Arc::new(ToolSet::new(
        1,
        vec![erase(Named("live_tool")), erase(Named("other_tool"))],
    ))));
    let tool_search: ToolSearchConfig = serde_json::from_value(json!({"enabled": true})).unwrap();
    let spec = LeadAgentSpec {
        live_tools: Some(Arc::new(source)),
        tool_search,
        ..LeadAgentSpec::new(Arc::new(catalog))
    };
    let said = ask(
        &LeadAgents::new(spec).agent(&Map::new()).await.unwrap(),
        "hi",
    )
    .await;
    let asked = model.asked();
    assert!(
        asked[0]
            .system
            .as_deref()
            .unwrap()
            .contains("live_tool\nother_tool")
    );
    let offered = |at: usize| {
        asked[at]
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!(offered(1), [ASK_CLARIFICATION, "tool_search"]);
    assert_eq!(offered(2), [ASK_CLARIFICATION, "tool_search", "live_tool"]);
    let refused = said
        .state()
        .messages()
        .iter()
        .find(|message| message.tool_call_id() == Some("c0"))
        .unwrap();
    assert!(refused.content.text().contains("is not loaded"));
    assert_eq!(
        said.state().channel("promoted").unwrap()["names"],
        json!(["live_tool"])
    );
}
