//! Tests with random conversations: after any cut the view is paired and fits, and after any
//! failure the thread retains all messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use futures_util::FutureExt;
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::fit::fit;
use super::{Policy, View};
use crate::agents::AgentSource;
use crate::agents::lead::{LeadAgentSpec, LeadAgents};
use crate::agents::test_support::{ReplayModel, Reply, calls, fresh, run, state_of};
use crate::clock::{ManualClock, SystemClock};
use crate::ids::SeededIds;
use crate::messages::{Message, MessageKind, ToolCall, ToolStatus};
use crate::middlewares::repair;
use crate::models::{
    ChatModel, ModelCatalog, ModelEntry, ModelError, ModelErrorKind, ModelInfo, ModelRequest,
    ModelStream, TokenFamily,
};
use crate::runtime::agent::{Agent, AgentEvent, RunContext};
use crate::state::{StateUpdate, ThreadState};
use crate::testkit::at;

/// Window of the models in these tests, in tokens.
const WINDOW: u64 = 4_000;

/// Window for tests of complete agents: their system prompt and tools need a share of it.
const AGENT_WINDOW: u64 = 16_000;

/// Turn of a conversation: the length of the question, and per step the number of calls and the
/// length of their results.
type Turn = (usize, Vec<(usize, usize)>);

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let step = (1..4_usize, 0..3_000_usize);
    prop::collection::vec((0..2_000_usize, prop::collection::vec(step, 0..4)), 1..30)
}

fn messages_of((question, steps): &Turn, turn: usize) -> Vec<Message> {
    let mut messages = vec![Message::human("q".repeat(*question))];
    for (step, (calls, length)) in steps.iter().enumerate() {
        let calls: Vec<ToolCall> = (0..*calls)
            .map(|n| ToolCall::new(format!("{turn}-{step}-{n}"), "ls", Map::new()))
            .collect();
        messages.push(Message::ai("").with(|body| {
            if let MessageKind::Ai { tool_calls, .. } = &mut body.kind {
                tool_calls.clone_from(&calls);
            }
        }));
        messages.extend(
            calls
                .iter()
                .map(|call| Message::tool(call, "r".repeat(*length), ToolStatus::Success)),
        );
    }
    messages.push(Message::ai("done"));
    messages
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn view_is_paired_and_fits_after_every_step(turns in turns(), trigger in 4..40_u64, keep in 1..30_u64) {
        let config = json!({"trigger": [{"type": "messages", "value": trigger}, {"type": "fraction", "value": 0.8}],
                            "keep": {"type": "messages", "value": keep}});
        let policy = Policy::new(&serde_json::from_value(config).unwrap(), Some(WINDOW), TokenFamily::Other);
        let ids = SeededIds::new(1);
        let mut state = ThreadState::default();
        for (number, turn) in turns.iter().enumerate() {
            for message in messages_of(turn, number) {
                state.apply(StateUpdate::messages([message]), &ids).unwrap();
                // A model is called only after complete results.
                let view = View::of(&state).messages();
                if repair(view.clone()) != view {
                    continue;
                }
                let before = state.messages().len();
                let cut = policy.is_due(&View::of(&state)).then(|| policy.cut(&View::of(&state), None)).flatten();
                if let Some(at) = cut {
                    let update = View::of(&state).cut_at(at, "notes");
                    state.apply(update, &ids).unwrap();
                }
                prop_assert_eq!(state.messages().len(), before);
                let view = View::of(&state);
                let newest = state.messages().iter().rfind(|message| message.is_human());
                let seen = view.messages();
                prop_assert_eq!(&repair(seen.clone()), &seen);
                prop_assert!(newest.is_none_or(|newest| seen.contains(newest)));
                let sent = fit(seen, WINDOW, TokenFamily::Other);
                prop_assert_eq!(&repair(sent.clone()), &sent);
                prop_assert!(TokenFamily::Other.tokens_of(&sent) <= WINDOW);
                prop_assert!(sent.iter().any(|message| message.id == newest.and_then(|newest| newest.id.clone())));
            }
        }
    }
}

/// Model that calls a tool and then answers. Three of four summary requests fail.
#[derive(Debug)]
struct FlakyModel {
    info: ModelInfo,
    summaries: AtomicU64,
    asked: Mutex<Vec<Vec<Message>>>,
}

impl FlakyModel {
    fn new() -> Arc<Self> {
        let info = ModelInfo {
            name: "moody".to_owned(),
            model: "m".to_owned(),
            provider: "p".to_owned(),
            supports_vision: false,
        };
        Arc::new(Self {
            info,
            summaries: AtomicU64::new(0),
            asked: Mutex::default(),
        })
    }

    /// Returns the model's reply to a conversation.
    fn answer(messages: &[Message]) -> Reply {
        let asks_for_summary = messages[0].content.text().contains("<new_messages>");
        if asks_for_summary {
            return Reply::Say("what was said so far");
        }
        if messages.last().is_some_and(Message::is_human) {
            calls([("c", "nothing", json!({}))])
        } else {
            Reply::Say("fine")
        }
    }
}

#[async_trait]
impl ChatModel for FlakyModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        if request.messages[0]
            .content
            .text()
            .contains("<new_messages>")
        {
            let number = self.summaries.fetch_add(1, Ordering::Relaxed);
            if number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 62 != 0 {
                let message = "no".to_owned();
                return Err(ModelError {
                    model: "moody".to_owned(),
                    kind: ModelErrorKind::BadRequest,
                    message,
                    status: None,
                    retry_after: None,
                });
            }
        } else {
            self.asked.lock().push(request.messages.clone());
        }
        ReplayModel::new([Self::answer(&request.messages)])
            .stream(request)
            .await
    }
}

/// Lead agent with this model.
fn agent(model: Arc<dyn ChatModel>, summarization: Value) -> Arc<dyn Agent> {
    let entry = ModelEntry {
        context_window: Some(AGENT_WINDOW),
        ..ModelEntry::new(&model.info().name, "scripted", "m")
    };
    let catalog = ModelCatalog::new([entry], Arc::new(SystemClock)).with_model(model);
    let spec = LeadAgentSpec {
        summarization: serde_json::from_value(summarization).unwrap(),
        ..LeadAgentSpec::new(Arc::new(catalog))
    };
    LeadAgents::new(spec)
        .agent(&Map::new())
        .now_or_never()
        .unwrap()
        .unwrap()
}

/// Long question, so that few of them fill a window.
fn asked(turn: u64) -> String {
    format!("question {turn}\n{}", "word ".repeat(800))
}

#[tokio::test]
async fn history_of_500_turns_survives_failing_summaries() {
    let config = json!({"enabled": true, "trigger": {"type": "messages", "value": 30}, "keep": {"type": "messages", "value": 10}});
    let model = FlakyModel::new();
    let agent = agent(model.clone(), config);
    let mut state = ThreadState::default();
    for turn in 0..500 {
        state
            .apply(
                StateUpdate::messages([Message::human(asked(turn))]),
                &SeededIds::new(turn * 1_000 + 7),
            )
            .unwrap();
        let tried = model.summaries.load(Ordering::Relaxed);
        let change = |ctx: &mut RunContext| {
            ctx.ids = Arc::new(SeededIds::new(1_000_000 + turn * 1_000));
            // Turns are one minute apart, and the cooldown after a failure is two minutes.
            ctx.clock = Arc::new(ManualClock::starting_at(at(
                i64::try_from(turn).unwrap() * 60
            )));
        };
        let output = run(&agent, fresh(state), change).await;
        assert!(output.outcome.is_ok());
        assert!(
            model.summaries.load(Ordering::Relaxed) - tried <= 1,
            "at most one summary is tried per run"
        );
        for messages in std::mem::take(&mut *model.asked.lock()) {
            assert_eq!(repair(messages.clone()), messages);
            assert!(
                TokenFamily::Other.tokens_of(&messages) <= AGENT_WINDOW,
                "the request fits with and without a summary"
            );
            assert!(messages.iter().any(|message| {
                message
                    .content
                    .text()
                    .lines()
                    .any(|line| line == format!("question {turn}"))
            }));
        }
        state = output.state().clone();
    }
    let questions: Vec<String> = state
        .messages()
        .iter()
        .filter(|message| message.is_human())
        .map(|message| message.content.text())
        .collect();
    assert_eq!(questions, (0..500).map(asked).collect::<Vec<_>>());
    assert_eq!(state.messages().len(), 2_000);
    assert!(
        View::of(&state).kept().len() < 160,
        "some summaries succeeded"
    );
}

#[tokio::test]
async fn summary_replaces_old_messages_and_counts_for_middleware() {
    let config = json!({"enabled": true, "trigger": {"type": "messages", "value": 6}, "keep": {"type": "messages", "value": 2}});
    let model = ReplayModel::new([Reply::Say("the notes"), Reply::Say("the answer")]);
    let agent = agent(model.clone(), config);
    let state = state_of((0..3).flat_map(|n| {
        [
            Message::ai(format!("a{n}")),
            Message::human(format!("q{n}")),
        ]
    }));
    let output = run(&agent, fresh(state), |_| {}).await;
    assert_eq!(output.state().messages().len(), 7);
    assert_eq!(
        output.state().channel("summary_text"),
        Some(&json!("the notes"))
    );
    let requests: Vec<Vec<String>> = model
        .requests()
        .iter()
        .map(|request| {
            request
                .messages
                .iter()
                .map(|message| message.content.text())
                .collect()
        })
        .collect();
    assert!(requests[0][0].contains("User: q0"));
    let [notes, answer, question] = &requests[1][..] else {
        panic!("{:?}", requests[1])
    };
    assert!(
        notes.contains("the notes") && answer == "a2" && question.contains("q2"),
        "{:?}",
        requests[1]
    );
    let callers: Vec<&str> = output
        .events
        .iter()
        .filter_map(|event| {
            if let AgentEvent::ModelCall(call) = event {
                Some(call.caller.as_str())
            } else {
                None
            }
        })
        .collect();
    assert_eq!(callers, ["middleware:summarize", "lead_agent"]);
    let streamed: String = output
        .events
        .iter()
        .filter_map(|event| {
            if let AgentEvent::Token(chunk, _) = event {
                Some(chunk.content.as_str())
            } else {
                None
            }
        })
        .collect();
    assert_eq!(streamed, "the answer");
}
