//! Hooks in the loop: their order, their updates, their jumps.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::json;

use crate::agents::AgentBuilder;
use crate::agents::test_support::*;
use crate::messages::{Message, ToolStatus, kwargs};
use crate::middlewares::{HookOutcome, HookResult, Hooks, Jump, Middleware};
use crate::runtime::agent::{AgentError, AgentEvent, RunContext, StopKind};
use crate::state::{StateUpdate, ThreadState};

type Log = Arc<Mutex<Vec<String>>>;
type Act = fn(&str, &ThreadState) -> HookResult;

/// Notes each hook, and does what the test says.
#[derive(Clone)]
struct Probe {
    name: &'static str,
    log: Log,
    act: Act,
}

impl std::fmt::Debug for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Probe {
    fn hook(&self, hook: &str, state: &ThreadState) -> HookResult {
        self.log.lock().push(format!("{}.{hook}", self.name));
        (self.act)(hook, state)
    }
}

#[async_trait]
impl Middleware for Probe {
    fn name(&self) -> &str {
        self.name
    }

    fn hooks(&self) -> Hooks {
        Hooks::BEFORE_AGENT | Hooks::BEFORE_MODEL | Hooks::AFTER_MODEL | Hooks::AFTER_AGENT
    }

    async fn before_agent(&self, state: &ThreadState, _ctx: &RunContext) -> HookResult {
        self.hook("before_agent", state)
    }

    async fn before_model(&self, state: &ThreadState, _ctx: &RunContext) -> HookResult {
        self.hook("before_model", state)
    }

    async fn after_model(&self, state: &ThreadState, _ctx: &RunContext) -> HookResult {
        self.hook("after_model", state)
    }

    async fn after_agent(&self, state: &ThreadState, _ctx: &RunContext) -> HookResult {
        self.hook("after_agent", state)
    }
}

/// Runs an agent with middlewares A and B, of which B acts.
async fn run_with(replies: Vec<Reply>, act: Act) -> (Said, Vec<String>, Arc<ReplayModel>) {
    let log = Log::default();
    let model = ReplayModel::new(replies);
    let agent = AgentBuilder::new(model.clone())
        .middleware(Probe {
            name: "A",
            log: log.clone(),
            act: |_, _| Ok(HookOutcome::default()),
        })
        .middleware(Probe {
            name: "B",
            log: log.clone(),
            act,
        })
        .build();
    let said = run(&agent, fresh(state_of([Message::human("go")])), |ctx| {
        ctx.recursion_limit = 30
    })
    .await;
    let log = log.lock().clone();
    (said, log, model)
}

fn answers(state: &ThreadState) -> usize {
    state
        .messages()
        .iter()
        .filter(|message| message.is_ai())
        .count()
}

#[tokio::test]
async fn before_hooks_go_down_and_after_hooks_up() {
    let (_, log, _) = run_with(vec![Reply::Say("hi")], |_, _| Ok(HookOutcome::default())).await;
    let wanted = [
        "A.before_agent",
        "B.before_agent",
        "A.before_model",
        "B.before_model",
        "B.after_model",
        "A.after_model",
        "B.after_agent",
        "A.after_agent",
    ];
    assert_eq!(log, wanted);
}

#[tokio::test]
async fn a_jump_to_the_model_skips_the_rest_of_the_phase_and_enters_the_loop_again() {
    let (said, log, _) = run_with(vec![Reply::Say("one"), Reply::Say("two")], |hook, state| {
        let again = hook == "after_model" && answers(state) == 1;
        Ok(if again {
            HookOutcome::default().jump(Jump::Model)
        } else {
            HookOutcome::default()
        })
    })
    .await;
    assert_eq!(said.transcript(), ["human:go", "ai:one", "ai:two"]);
    assert_eq!(
        log.iter().filter(|hook| *hook == "A.after_model").count(),
        1
    );
    assert_eq!(
        log.iter().filter(|hook| *hook == "A.before_model").count(),
        2
    );
}

#[tokio::test]
async fn a_jump_to_the_end_beats_pending_calls_and_the_last_hooks_still_run() {
    let (said, log, _) = run_with(vec![calls([("a", "t", json!({}))])], |hook, _| {
        let stop = HookOutcome {
            stop_reason: Some("loop_capped".to_owned()),
            ..HookOutcome::default().jump(Jump::End)
        };
        Ok(if hook == "after_model" {
            stop
        } else {
            HookOutcome::default()
        })
    })
    .await;
    let outcome = said.outcome.as_ref().unwrap();
    assert_eq!(
        (&outcome.kind, outcome.stop_reason.as_deref()),
        (&StopKind::Completed, Some("loop_capped"))
    );
    assert_eq!(log.last().map(String::as_str), Some("A.after_agent"));
    assert!(
        said.state()
            .messages()
            .iter()
            .all(|message| message.tool_call_id().is_none())
    );
}

#[tokio::test]
async fn a_jump_to_the_end_before_the_model_asks_nobody() {
    let (said, _, model) = run_with(vec![Reply::Say("x")], |hook, _| {
        Ok(if hook == "before_model" {
            HookOutcome::default().jump(Jump::End)
        } else {
            HookOutcome::default()
        })
    })
    .await;
    assert!(said.outcome.is_ok() && model.asked().is_empty());
}

#[tokio::test]
async fn endless_jumps_meet_the_recursion_limit() {
    for hook in ["before_agent", "before_model", "after_model", "after_agent"] {
        let act: Act = match hook {
            "before_agent" => |hook, _| {
                Ok(if hook == "before_model" {
                    HookOutcome::default().jump(Jump::Model)
                } else {
                    HookOutcome::default()
                })
            },
            "before_model" => |hook, _| {
                Ok(if hook == "before_model" {
                    HookOutcome::default().jump(Jump::Model)
                } else {
                    HookOutcome::default()
                })
            },
            "after_model" => |hook, _| {
                Ok(if hook == "after_model" {
                    HookOutcome::default().jump(Jump::Model)
                } else {
                    HookOutcome::default()
                })
            },
            _ => |hook, _| {
                Ok(if hook == "after_agent" {
                    HookOutcome::default().jump(Jump::Model)
                } else {
                    HookOutcome::default()
                })
            },
        };
        let (said, log, _) = run_with(vec![Reply::Say("x")], act).await;
        assert!(
            matches!(said.outcome, Err(AgentError::RecursionLimit(30))),
            "{hook}"
        );
        assert!(log.len() <= 30);
    }
}

#[tokio::test]
async fn results_that_a_hook_gives_in_the_tools_place_go_round_again() {
    let (said, _, model) = run_with(
        vec![calls([("a", "t", json!({}))]), Reply::Say("done")],
        |hook, state| {
            let open = (hook == "after_model")
                .then(|| {
                    state
                        .messages()
                        .last()
                        .and_then(|last| last.tool_calls().first().cloned())
                })
                .flatten();
            let result = open.map(|call| Message::tool(&call, "given", ToolStatus::Success));
            Ok(StateUpdate::messages(result).into())
        },
    )
    .await;
    assert_eq!(
        said.transcript(),
        ["human:go", "ai:", "tool:given", "ai:done"]
    );
    assert_eq!(said.nodes(), ["model", "B.after_model", "model"]);
    assert_eq!(model.asked().len(), 2);
}

#[tokio::test]
async fn only_visible_messages_of_hooks_are_shown_and_all_get_ids() {
    let (said, _, _) = run_with(vec![Reply::Say("hi")], |hook, _| {
        let hidden = Message::human("reminder").with(|body| {
            body.additional_kwargs
                .insert(kwargs::HIDE_FROM_UI.to_owned(), json!(true));
        });
        let update =
            StateUpdate::messages([hidden, Message::ai("welcome"), Message::system("rules")]);
        Ok(if hook == "before_agent" {
            update.into()
        } else {
            HookOutcome::default()
        })
    })
    .await;
    let shown: Vec<String> = said
        .events
        .iter()
        .filter_map(|event| {
            if let AgentEvent::Message(message, meta) = event {
                Some((message, meta))
            } else {
                None
            }
        })
        .map(|(message, meta)| format!("{}@{}", message.content.text(), meta.langgraph_node))
        .collect();
    assert_eq!(shown, ["go@__start__", "welcome@B.before_agent"]);
    let step = said
        .steps()
        .into_iter()
        .find(|step| step.node == "B.before_agent")
        .unwrap();
    let told: Vec<_> = step
        .update
        .as_ref()
        .unwrap()
        .messages
        .iter()
        .map(|message| message.id.clone())
        .collect();
    let held: Vec<_> = said.state().messages()[1..4]
        .iter()
        .map(|message| message.id.clone())
        .collect();
    assert_eq!(told, held);
}

#[tokio::test]
async fn an_update_that_cannot_be_reduced_fails_the_run() {
    let (said, _, _) = run_with(vec![Reply::Say("x")], |_, _| {
        Ok(StateUpdate::channel("no_such_channel", json!(1)).into())
    })
    .await;
    assert!(matches!(said.outcome, Err(AgentError::State(_))));
}
