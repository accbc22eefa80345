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

/// Middleware that logs each hook and acts as the test specifies.
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
async fn run_with(replies: Vec<Reply>, act: Act) -> (RunOutput, Vec<String>, Arc<ReplayModel>) {
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
    let output = run(&agent, fresh(state_of([Message::human("go")])), |ctx| {
        ctx.recursion_limit = 30
    })
    .await;
    let log = log.lock().clone();
    (output, log, model)
}

fn answers(state: &ThreadState) -> usize {
    state
        .messages()
        .iter()
        .filter(|message| message.is_ai())
        .count()
}

#[tokio::test]
async fn after_hooks_run_in_reverse_order() {
    let (_, log, _) = run_with(vec![Reply::Say("hi")], |_, _| Ok(HookOutcome::default())).await;
    let expected = [
        "A.before_agent",
        "B.before_agent",
        "A.before_model",
        "B.before_model",
        "B.after_model",
        "A.after_model",
        "B.after_agent",
        "A.after_agent",
    ];
    assert_eq!(log, expected);
}

#[tokio::test]
async fn jump_to_model_skips_the_phase_and_starts_a_new_round() {
    let (output, log, _) = run_with(vec![Reply::Say("one"), Reply::Say("two")], |hook, state| {
        let repeats = hook == "after_model" && answers(state) == 1;
        Ok(if repeats {
            HookOutcome::default().jump(Jump::Model)
        } else {
            HookOutcome::default()
        })
    })
    .await;
    assert_eq!(output.transcript(), ["human:go", "ai:one", "ai:two"]);
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
async fn jump_to_end_skips_pending_calls_and_runs_last_hooks() {
    let (output, log, _) = run_with(vec![calls([("a", "t", json!({}))])], |hook, _| {
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
    let outcome = output.outcome.as_ref().unwrap();
    assert_eq!(
        (&outcome.kind, outcome.stop_reason.as_deref()),
        (&StopKind::Completed, Some("loop_capped"))
    );
    assert_eq!(log.last().map(String::as_str), Some("A.after_agent"));
    assert!(
        output
            .state()
            .messages()
            .iter()
            .all(|message| message.tool_call_id().is_none())
    );
}

#[tokio::test]
async fn jump_to_end_before_the_model_skips_the_model() {
    let (output, _, model) = run_with(vec![Reply::Say("x")], |hook, _| {
        Ok(if hook == "before_model" {
            HookOutcome::default().jump(Jump::End)
        } else {
            HookOutcome::default()
        })
    })
    .await;
    assert!(output.outcome.is_ok() && model.requests().is_empty());
}

#[tokio::test]
async fn endless_jumps_hit_the_recursion_limit() {
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
        let (output, log, _) = run_with(vec![Reply::Say("x")], act).await;
        assert!(
            matches!(output.outcome, Err(AgentError::RecursionLimit(30))),
            "{hook}"
        );
        assert!(log.len() <= 30);
    }
}

#[tokio::test]
async fn tool_results_from_a_hook_start_a_new_round() {
    let (output, _, model) = run_with(
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
        output.transcript(),
        ["human:go", "ai:", "tool:given", "ai:done"]
    );
    assert_eq!(output.nodes(), ["model", "B.after_model", "model"]);
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn hook_messages_get_ids_and_only_visible_ones_are_emitted() {
    let (output, _, _) = run_with(vec![Reply::Say("hi")], |hook, _| {
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
    let view: Vec<String> = output
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
    assert_eq!(view, ["go@__start__", "welcome@B.before_agent"]);
    let step = output
        .steps()
        .into_iter()
        .find(|step| step.node == "B.before_agent")
        .unwrap();
    let emitted: Vec<_> = step
        .update
        .as_ref()
        .unwrap()
        .messages
        .iter()
        .map(|message| message.id.clone())
        .collect();
    let stored: Vec<_> = output.state().messages()[1..4]
        .iter()
        .map(|message| message.id.clone())
        .collect();
    assert_eq!(emitted, stored);
}

#[tokio::test]
async fn irreducible_update_fails_the_run() {
    let (output, _, _) = run_with(vec![Reply::Say("x")], |_, _| {
        Ok(StateUpdate::channel("no_such_channel", json!(1)).into())
    })
    .await;
    assert!(matches!(output.outcome, Err(AgentError::State(_))));
}
