//! Turns of the kind `deerflow` with replayed models and the scripted model.

use std::sync::Arc;

use futures_util::FutureExt;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{DeerflowFactory, ResolvedAgents};
use crate::agents::lead::LEAD_AGENT;
use crate::agents::test_support::{ReplayModel, Reply, calls, context};
use crate::agents::{AgentBuilder, StaticResolver};
use crate::flow::adapter::{
    AdapterContext, AdapterFactory, AgentInvocation, AgentTurnResult, DeltaSink, ExpectedOutput,
    InvocationId, SessionId, TurnDelta, TurnMessage, TurnMode, TurnRole, TurnRuntime, TurnStatus,
};
use crate::flow::compiled::EffectiveAgent;
use crate::flow::testkit::{AdapterSubject, adapter_keeps_the_contract};
use crate::ids::{IdSource, SeededIds};
use crate::messages::{Message, UsageMetadata};
use crate::middlewares::ClarificationMiddleware;
use crate::models::ScriptedModel;
use crate::runtime::actor_context::ActorContext;
use crate::runtime::agent::{
    Agent, AgentEvent, AgentInput, AgentOutcome, AgentStart, AgentStream, EventReceiver,
    RunContext, StepEvent, StopKind,
};
use crate::runtime::checkpoint::{CheckpointSource, NestedState, PendingTask};
use crate::state::StateUpdate;
use crate::tools::builtins::AskClarification;

const NAMESPACE: &str = "n:task";

/// Events of the nested agent.
#[derive(Debug, Default)]
struct Events(Mutex<Vec<AgentEvent>>);

impl DeltaSink for Events {
    fn delta(&self, _delta: TurnDelta) {}

    fn event(&self, event: AgentEvent) {
        self.0.lock().push(event);
    }
}

impl Events {
    /// Returns the last state, as the runtime saves it.
    fn saved(&self) -> Arc<NestedState> {
        let events = self.0.lock();
        let step = |event: &AgentEvent| match event {
            AgentEvent::Step(step) => Some(step.clone()),
            _ => None,
        };
        let last = events.iter().rev().find_map(step).unwrap();
        Arc::new(NestedState {
            checkpoint_id: SeededIds::new(2).checkpoint_id(),
            parent_id: None,
            source: CheckpointSource::Loop,
            step: 1,
            next: last.next,
            machine: Some(last.machine),
            state: last.state,
            created_at: Default::default(),
        })
    }
}

fn factory(lead: Arc<dyn Agent>) -> DeerflowFactory {
    let resolver = StaticResolver::new().with_agent(LEAD_AGENT, lead);
    let agents = ResolvedAgents::new(Arc::new(resolver));
    DeerflowFactory::new(Arc::new(agents), Arc::new(SeededIds::new(1)))
}

fn effective(config: Value) -> Arc<EffectiveAgent> {
    Arc::new(EffectiveAgent {
        agent_id: "a".to_owned(),
        adapter_kind: super::KIND.to_owned(),
        model_profile: Default::default(),
        tool_policy: Default::default(),
        memory_policy: Default::default(),
        subagent_policy: Default::default(),
        timeouts: Default::default(),
        budgets: Default::default(),
        adapter_config: config.as_object().cloned().unwrap_or_default(),
        output_kind: None,
        turn_mode: None,
        tools: Vec::new(),
        asset: None,
    })
}

fn invocation(agent: &Arc<EffectiveAgent>) -> AgentInvocation {
    AgentInvocation {
        invocation_id: InvocationId("i".to_owned()),
        session_id: SessionId("s".to_owned()),
        run_id: "run".to_owned(),
        flow_name: "F".to_owned(),
        node_id: "n".to_owned(),
        visit: 1,
        agent: agent.clone(),
        turn_mode: TurnMode::Normal,
        system_prompt: "Be brief.".to_owned(),
        user_prompt: "Work.".to_owned(),
        segments: Arc::from([]),
        input: Map::new(),
        messages: Arc::from([]),
        expected_output: None,
        model: None,
        temperature: None,
        max_tokens: None,
        answer: None,
    }
}

fn runtime(nested: Option<Arc<NestedState>>) -> TurnRuntime {
    // Each run has ids of its own.
    let seed = nested
        .as_ref()
        .map_or(1, |saved| saved.state.messages().len() + 2);
    TurnRuntime {
        context: Some(context(seed as u64).0),
        namespace: NAMESPACE.to_owned(),
        nested,
        deadline: None,
    }
}

async fn turn(
    lead: Arc<dyn Agent>,
    runtime: TurnRuntime,
    config: Value,
    change: impl FnOnce(&mut AgentInvocation),
) -> (AgentTurnResult, Events) {
    let agent = effective(config);
    let context = AdapterContext {
        flow_name: "F".to_owned(),
        flow_config: Map::new(),
        agent: agent.clone(),
        actor: ActorContext::user("ann"),
    };
    let adapter = factory(lead).create(context).await.unwrap();
    let (events, mut invocation) = (Events::default(), invocation(&agent));
    change(&mut invocation);
    let cancel = CancellationToken::new();
    let result = adapter.run_turn(invocation, runtime, &events, cancel).await;
    (result, events)
}

fn transcript(model: &ReplayModel) -> Vec<String> {
    let request = model.requests().pop().unwrap();
    crate::agents::test_support::transcript(&request.messages)
}

#[tokio::test]
async fn deerflow_adapter_keeps_the_contract() {
    let lead = AgentBuilder::new(Arc::new(ScriptedModel::default())).build();
    let subject = AdapterSubject {
        factory: Arc::new(factory(lead)),
        agent: effective(json!({})),
        succeeding_prompt: "say one two".to_owned(),
        succeeding_node: "n".to_owned(),
        failing_prompt: "[[error 400]]".to_owned(),
        failing_node: "n".to_owned(),
        runtime: runtime(None),
    };
    adapter_keeps_the_contract(&subject).await;
}

#[tokio::test]
async fn turn_without_a_run_is_a_clear_failure() {
    let lead = AgentBuilder::new(Arc::new(ScriptedModel::default())).build();
    let (result, _) = turn(lead, TurnRuntime::default(), json!({}), |_| ()).await;
    assert_eq!(result.status, TurnStatus::Failed);
    assert_eq!(result.error.unwrap().code, "runtime_missing");
}

#[tokio::test]
async fn history_precedes_the_prompt_of_the_turn() {
    let model = ReplayModel::new([Reply::Say("done")]);
    let lead = AgentBuilder::new(model.clone()).build();
    let message = |role, content: &str| TurnMessage {
        role,
        content: content.to_owned(),
    };
    let history = [
        message(TurnRole::User, "before"),
        message(TurnRole::Assistant, "yes"),
    ];
    let (result, _) = turn(lead, runtime(None), json!({}), |turn| {
        turn.messages = Arc::from(history);
    })
    .await;
    assert_eq!(result.final_text, "done");
    let expected = ["human:before", "ai:yes", "human:Be brief.\n\nWork."];
    assert_eq!(transcript(&model), expected);
}

#[tokio::test]
async fn structured_output_is_extracted() {
    let model = ReplayModel::new([Reply::Say("{\"score\": 1, \"reason\": \"fine\"}")]);
    let lead = AgentBuilder::new(model.clone()).build();
    let (result, _) = turn(lead, runtime(None), json!({}), |turn| {
        turn.turn_mode = TurnMode::Evaluate;
        turn.expected_output = Some(ExpectedOutput {
            schema_ref: "score".to_owned(),
            schema: Some(json!({"type": "object"})),
        });
    })
    .await;
    assert_eq!(result.structured_output.unwrap()["score"], 1);
    assert_eq!(result.final_text, "fine");
    assert!(transcript(&model)[0].contains("JSON object, the score"));
}

#[tokio::test]
async fn usage_is_that_of_the_model_calls() {
    let lead = AgentBuilder::new(Arc::new(ScriptedModel::default())).build();
    let (result, events) = turn(lead, runtime(None), json!({}), |turn| {
        turn.system_prompt.clear();
        turn.user_prompt = "[[usage 11,7]] then say hello".to_owned();
    })
    .await;
    let usage = result.usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (11, 7));
    let is_call = |event: &AgentEvent| match event {
        AgentEvent::ModelCall(call) => call.usage.as_ref().map(UsageMetadata::total) == Some(18),
        _ => false,
    };
    assert!(events.0.lock().iter().any(is_call));
}

#[tokio::test]
async fn clarification_is_answered_by_the_next_message() {
    let question = json!({"question": "Which color?", "clarification_type": "missing_info"});
    let ask = calls([("c1", "ask_clarification", question)]);
    let model = ReplayModel::new([ask, Reply::Say("painted")]);
    let lead = AgentBuilder::new(model.clone())
        .tool(AskClarification)
        .middleware(ClarificationMiddleware)
        .build();
    let (asked, events) = turn(lead.clone(), runtime(None), json!({}), |_| ()).await;
    assert_eq!(asked.status, TurnStatus::Interrupted);
    assert_eq!(asked.interrupt.unwrap()["question"], "Which color?");
    let (result, _) = turn(lead, runtime(Some(events.saved())), json!({}), |turn| {
        turn.answer = Some(json!("blue"));
    })
    .await;
    assert_eq!(result.final_text, "painted");
    assert_eq!(transcript(&model).last().unwrap(), "human:blue");
}

/// Agent that asks two questions and repeats the answers.
#[derive(Debug)]
struct Asker;

impl Agent for Asker {
    fn stream(&self, input: AgentInput, ctx: RunContext, events: EventReceiver) -> AgentStream {
        let driver = async move {
            let mut state = input.state;
            if let AgentStart::Resume(answer) = &input.start {
                let text = answer.as_str().unwrap_or_default();
                let id = Some(ctx.ids.message_id());
                let message = Message::ai(text).with(|body| body.id = id);
                state.apply(StateUpdate::messages([message]), &*ctx.ids)?;
            }
            let answers = state.messages().iter().filter(|message| message.is_ai());
            let open = (answers.count() < 2).then(|| json!({"value": "which?", "id": "q"}));
            let mut next = Vec::new();
            if let Some(open) = &open {
                let mut task = PendingTask::new("t", "ask");
                task.interrupts.push(open.clone());
                next.push(task);
            }
            ctx.sink.emit(AgentEvent::Step(StepEvent {
                node: "ask".to_owned(),
                update: None,
                state: Arc::new(state),
                next,
                machine: json!("asked"),
                steps: 1,
                checkpoint: true,
            }));
            let kind = match open {
                Some(open) => StopKind::Question(vec![open]),
                None => StopKind::Completed,
            };
            Ok(AgentOutcome {
                kind,
                stop_reason: None,
            })
        };
        AgentStream::new(events, driver.boxed())
    }

    fn nodes(&self) -> Vec<String> {
        vec!["ask".to_owned()]
    }
}

#[tokio::test]
async fn questions_are_answered_one_after_the_other() {
    let mut saved = None;
    for answer in [None, Some("red"), Some("round")] {
        let (result, events) = turn(Arc::new(Asker), runtime(saved), json!({}), |turn| {
            turn.answer = answer.map(|text| json!(text));
        })
        .await;
        if answer == Some("round") {
            assert_eq!(result.status, TurnStatus::Completed, "{:?}", result.error);
            assert_eq!(result.final_text, "round");
        } else {
            assert_eq!(result.status, TurnStatus::Interrupted);
            assert_eq!(result.interrupt, Some(json!("which?")));
        }
        saved = Some(events.saved());
    }
}

#[test]
fn configurations_are_checked() {
    let lead = AgentBuilder::new(Arc::new(ScriptedModel::default())).build();
    let factory = factory(lead);
    let table = [
        (json!({}), vec![]),
        (
            json!({"agentName": "x", "isPlanMode": true, "toolGroups": ["web"]}),
            vec![],
        ),
        (
            json!({"agentName": "x", "subagentType": "y"}),
            vec!["conflicting_agents"],
        ),
        (
            json!({"modelName": 5, "recursionLimit": 0}),
            vec!["invalid_value"; 2],
        ),
        (
            json!({"thinkingEnabled": "yes", "toolGroups": [1]}),
            vec!["invalid_value"; 2],
        ),
    ];
    for (config, expected) in table {
        let found = factory.validate_config(&Map::new(), &effective(config.clone()));
        let codes: Vec<&str> = found.iter().map(|finding| finding.code.as_str()).collect();
        assert_eq!(codes, expected, "{config}");
    }
}

#[tokio::test]
async fn unknown_subagent_is_a_failed_turn() {
    let lead = AgentBuilder::new(Arc::new(ScriptedModel::default())).build();
    let config = json!({"subagentType": "nobody"});
    let (result, _) = turn(lead, runtime(None), config, |_| ()).await;
    assert_eq!(result.error.unwrap().code, "agent_unavailable");
}
