//! Building of lead agents, and the state that a run of one leaves on its thread.

use futures_util::FutureExt;
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::agents::lead::factory::MAX_SHARED_AGENTS;
use crate::agents::lead::options::LeadOptions;
use crate::agents::test_support::{ReplayModel, Reply, ask, calls, fresh, run, state_of};
use crate::clock::SystemClock;
use crate::config::ToolSearchConfig;
use crate::messages::{Message, kwargs};
use crate::models::{ModelCatalog, ModelEntry, ModelError, ModelErrorKind, ScriptedModel};
use crate::tools::builtins::ASK_CLARIFICATION;
use crate::tools::{ToolSet, ToolSource, erase};

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
fn equal_options_share_an_agent_and_unknown_models_fail() {
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
    let (requests, shared) = agents.counts();
    assert_eq!((requests, shared), (202, MAX_SHARED_AGENTS));
}

#[test]
fn configuration_without_models_fails_with_a_reason() {
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
async fn conversation_gets_timestamps_and_a_title() {
    let output = ask(
        &with_model(ReplayModel::new([Reply::Say("hello")])),
        "what is the capital of the old kingdom of France, which was one of many",
    )
    .await;
    let human = &output.state().messages()[0];
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
        output.state().title(),
        Some("what is the capital of the old kingdom of France,...")
    );
    assert_eq!(
        output.state().channel("thread_data").unwrap()["uploads_path"],
        "/mnt/user-data/uploads"
    );
    assert_eq!(
        output.nodes(),
        [
            "ThreadDataMiddleware.before_agent",
            "model",
            "TitleMiddleware.after_model"
        ]
    );
    assert_eq!(
        output.steps().iter().filter(|step| step.checkpoint).count(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn permanent_provider_failure_becomes_an_answer() {
    let error = ModelError {
        model: "replay".to_owned(),
        kind: ModelErrorKind::Transient,
        message: "connection refused".to_owned(),
        status: None,
        retry_after: None,
    };
    let model = ReplayModel::new([Reply::Fail(error)]);
    let output = ask(&with_model(model.clone()), "hi").await;
    assert_eq!(model.requests().len(), 3, "tried again");
    assert!(output.outcome.is_ok());
    let last = output.state().messages().last().unwrap();
    assert!(last.flag(kwargs::ERROR_FALLBACK));
    assert_eq!(last.additional_kwargs["error_reason"], "transient");
    assert!(
        last.additional_kwargs["error_detail"]
            .as_str()
            .unwrap()
            .contains("connection refused")
    );
    let retries = output
        .events
        .iter()
        .filter(|event| matches!(event, crate::runtime::agent::AgentEvent::Custom(_)))
        .count();
    assert_eq!(retries, 2);
    let emitted =
        output.events.iter().filter(|event| matches!(event, crate::runtime::agent::AgentEvent::Message(message, _) if message.is_ai()));
    assert_eq!(
        emitted.count(),
        1,
        "subscribers of messages receive it as well"
    );
}

#[tokio::test]
async fn partial_answer_is_stored_before_the_failure_text() {
    use crate::runtime::agent::AgentEvent;
    let output = ask(
        &with_model(ReplayModel::new([Reply::Cut("half an ans")])),
        "hi",
    )
    .await;
    assert!(output.outcome.is_ok());
    let [_, partial, fallback] = output.state().messages() else {
        panic!("{:?}", output.transcript())
    };
    assert_eq!(partial.content.text(), "half an ans");
    assert!(partial.flag(kwargs::INCOMPLETE) && fallback.flag(kwargs::ERROR_FALLBACK));
    let streamed = output.events.iter().find_map(|event| {
        if let AgentEvent::Token(chunk, _) = event {
            Some(&chunk.id)
        } else {
            None
        }
    });
    assert_eq!(partial.id.as_ref(), streamed);
    let journaled: Vec<&Message> = output
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
    let emitted =
        |event: &&AgentEvent| matches!(event, AgentEvent::Message(message, _) if message.is_ai());
    assert_eq!(
        output.events.iter().filter(emitted).count(),
        1,
        "the partial answer was emitted as tokens"
    );
}

#[tokio::test]
async fn interrupted_calls_get_results_before_the_next_request() {
    let calling = with_model(ReplayModel::new([
        calls([("a", "nothing", json!({}))]),
        Reply::Say("done"),
    ]));
    let output = ask(&calling, "go").await;
    let called = output
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
    let sent: Vec<&str> = model.requests()[0]
        .messages
        .iter()
        .map(Message::type_name)
        .collect();
    assert_eq!(sent, ["human", "ai", "tool", "human"]);
}

#[test]
fn only_interactive_runs_can_ask() {
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

/// Tool source that a test changes.
#[derive(Debug, Default)]
struct ChangingTools(Mutex<Arc<ToolSet>>);

#[async_trait]
impl ToolSource for ChangingTools {
    async fn tools(&self) -> Arc<ToolSet> {
        self.0.lock().clone()
    }
}

/// Tool with any name.
struct NamedTool(&'static str);

impl crate::tools::Tool for NamedTool {
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
async fn changed_dynamic_tools_build_a_new_agent() {
    let (model, source) = (
        ReplayModel::new([Reply::Say("hello")]),
        Arc::new(ChangingTools::default()),
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
            names.iter().map(|name| erase(NamedTool(name))).collect(),
        ));
    };
    let before = agents.agent(&Map::new()).await.unwrap();
    set(1, &["live_tool", ASK_CLARIFICATION]);
    let after = agents.agent(&Map::new()).await.unwrap();
    assert!(
        !Arc::ptr_eq(&before, &after)
            && Arc::ptr_eq(&after, &agents.agent(&Map::new()).await.unwrap())
    );
    assert_eq!(agents.counts(), (1, 1), "the earlier agent is evicted");
    ask(&after, "hi").await;
    let offered: Vec<(String, bool)> = model.requests()[0]
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
async fn deferred_tools_are_offered_after_a_search() {
    let call = calls([("c1", "tool_search", json!({"query": "select:live_tool"}))]);
    let blind = calls([("c0", "live_tool", json!({}))]);
    let model = ReplayModel::new([blind, call, Reply::Say("done")]);
    let catalog = ModelCatalog::new([], Arc::new(SystemClock)).with_model(model.clone());
    let source = ChangingTools(Mutex::new(Arc::new(ToolSet::new(
        1,
        vec![
            erase(NamedTool("live_tool")),
            erase(NamedTool("other_tool")),
        ],
    ))));
    let tool_search: ToolSearchConfig = serde_json::from_value(json!({"enabled": true})).unwrap();
    let spec = LeadAgentSpec {
        live_tools: Some(Arc::new(source)),
        tool_search,
        ..LeadAgentSpec::new(Arc::new(catalog))
    };
    let output = ask(
        &LeadAgents::new(spec).agent(&Map::new()).await.unwrap(),
        "hi",
    )
    .await;
    let requests = model.requests();
    assert!(
        requests[0]
            .system
            .as_deref()
            .unwrap()
            .contains("live_tool\nother_tool")
    );
    let offered = |at: usize| {
        requests[at]
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!(offered(1), [ASK_CLARIFICATION, "tool_search"]);
    assert_eq!(offered(2), [ASK_CLARIFICATION, "tool_search", "live_tool"]);
    let refused = output
        .state()
        .messages()
        .iter()
        .find(|message| message.tool_call_id() == Some("c0"))
        .unwrap();
    assert!(refused.content.text().contains("is not loaded"));
    assert_eq!(
        output.state().channel("promoted").unwrap()["names"],
        json!(["live_tool"])
    );
}
