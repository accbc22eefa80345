//! Property tests of the machine without its driver: random walks with random outcomes.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::agents::agent_loop::NewInterrupt;
use crate::ids::SeededIds;
use crate::messages::{Message, MessageKind, ToolCall, ToolStatus};
use crate::runtime::runs::NodeSelector;
use crate::state::StateUpdate;

/// Random outcome of one step.
#[derive(Debug, Clone)]
struct StepOutcome {
    jump: Option<Jump>,
    /// Number of calls in the model's answer.
    calls: usize,
    /// Bit mask of the calls that ask; the others end.
    asks: u8,
    goto_end: bool,
}

fn any_outcome() -> impl Strategy<Value = StepOutcome> {
    let jump = prop_oneof![6 => Just(None), 1 => Just(Some(Jump::Model)), 1 => Just(Some(Jump::Tools)), 1 => Just(Some(Jump::End))];
    (jump, 0_usize..4, any::<u8>(), prop::bool::weighted(0.1)).prop_map(
        |(jump, calls, asks, goto_end)| StepOutcome {
            jump,
            calls,
            asks: asks & asks.rotate_left(3),
            goto_end,
        },
    )
}

fn nodes(hooks: [bool; 8]) -> Arc<LoopNodes> {
    let of = |phase: Phase| {
        let own = (0..2).filter(move |nth| hooks[phase as usize * 2 + nth]);
        own.map(|nth| (format!("M{nth}"), nth)).collect()
    };
    Arc::new(LoopNodes::with_hooks(of))
}

fn bounds(recursion_limit: u64) -> RunBounds {
    RunBounds {
        recursion_limit,
        interrupt_before: NodeSelector::None,
        interrupt_after: NodeSelector::None,
    }
}

/// Machine and state of one walk.
struct Walk {
    machine: LoopMachine,
    state: ThreadState,
    ids: SeededIds,
}

impl Walk {
    fn new(nodes: Arc<LoopNodes>, limit: u64) -> Self {
        let state = ThreadState::default();
        Self {
            machine: LoopMachine::new(nodes, bounds(limit), Uuid::nil()),
            state,
            ids: SeededIds::new(1),
        }
    }

    /// Applies the step with this outcome; returns `true` if the machine had stopped.
    fn apply(&mut self, step: Step, outcome: &StepOutcome) -> bool {
        match step {
            Step::Hook { .. } => self.machine.hook_done(outcome.jump, &self.state),
            Step::CallModel => {
                let call = |nth| {
                    ToolCall::new(
                        format!("{}-{nth}", self.machine.steps()),
                        "t",
                        Default::default(),
                    )
                };
                let calls = (0..outcome.calls).map(call).collect();
                let kind = MessageKind::Ai {
                    tool_calls: calls,
                    invalid_tool_calls: vec![],
                    usage_metadata: None,
                };
                self.add(vec![Message::ai("").with(|body| body.kind = kind)]);
                self.machine.model_done(&self.state);
            }
            Step::CallTools(pending) => {
                let (asking, answering): (Vec<_>, Vec<_>) = pending
                    .into_iter()
                    .enumerate()
                    .partition(|(nth, _)| outcome.asks >> nth & 1 == 1);
                self.add(
                    answering
                        .iter()
                        .map(|(_, pending)| Message::tool(&pending.call, "r", ToolStatus::Success))
                        .collect(),
                );
                let ask = |pending: PendingCall| NewInterrupt {
                    call_id: pending.call.id.clone(),
                    id: pending.call.id.clone(),
                    question: json!("?"),
                    of_approval: false,
                };
                let questions = asking
                    .into_iter()
                    .map(|(_, pending)| ask(pending))
                    .collect();
                self.machine.tools_done(ToolsDone {
                    goto_end: outcome.goto_end,
                    all_return_direct: None,
                    questions,
                });
            }
            Step::Stop(StopKind::Question(open)) => {
                let answers = open.iter().map(|entry| {
                    (
                        entry["id"].as_str().unwrap_or_default().to_owned(),
                        json!("!"),
                    )
                });
                self.machine
                    .answer(Value::Object(answers.collect()), |_| true)
                    .unwrap();
            }
            Step::Stop(_) | Step::RecursionExceeded(_) => return true,
        }
        false
    }

    fn add(&mut self, messages: Vec<Message>) {
        self.state
            .apply(StateUpdate::messages(messages), &self.ids)
            .unwrap();
    }
}

proptest! {
    #[test]
    fn walk_ends_and_counts_every_step(hooks: [bool; 8], chances in prop::collection::vec(any_outcome(), 1..20), limit in 1_u64..60) {
        let mut walk = Walk::new(nodes(hooks), limit);
        for outcome in chances.iter().cycle() {
            let step = walk.machine.next_step(&walk.state);
            let (before, works) = (walk.machine.steps(), matches!(step, Step::Hook { .. } | Step::CallModel | Step::CallTools(_)));
            if walk.apply(step, outcome) {
                break;
            }
            prop_assert_eq!(walk.machine.steps(), before + u64::from(works));
            prop_assert!(walk.machine.steps() <= limit);
        }
    }

    #[test]
    fn restored_machine_behaves_like_the_original(hooks: [bool; 8], chances in prop::collection::vec(any_outcome(), 1..30)) {
        let nodes = nodes(hooks);
        let mut walk = Walk::new(nodes.clone(), 1_000);
        for outcome in &chances {
            let restored = LoopMachine::restore(nodes.clone(), bounds(1_000), walk.machine.save()).unwrap();
            let step = walk.machine.next_step(&walk.state);
            prop_assert_eq!(restored.next_step(&walk.state), step.clone());
            prop_assert_eq!(restored.pending_tasks(&walk.state), walk.machine.pending_tasks(&walk.state));
            walk.machine = restored;
            if walk.apply(step, outcome) {
                break;
            }
        }
    }
}

#[test]
fn steps_of_a_run_are_in_order() {
    let mut walk = Walk::new(nodes([true; 8]), 100);
    let calm = |calls| StepOutcome {
        jump: None,
        calls,
        asks: 0,
        goto_end: false,
    };
    let mut order = Vec::new();
    loop {
        let step = walk.machine.next_step(&walk.state);
        order.push(walk.machine.node().to_owned());
        let calls = usize::from(order.iter().filter(|node| *node == "model").count() == 1);
        if walk.apply(step, &calm(calls)) {
            break;
        }
    }
    let round = [
        "M0.before_model",
        "M1.before_model",
        "model",
        "M0.after_model",
        "M1.after_model",
    ];
    let expected = [
        &["M0.before_agent", "M1.before_agent"],
        &round[..],
        &["tools"],
        &round,
        &["M0.after_agent", "M1.after_agent", "__end__"],
    ];
    assert_eq!(order, expected.concat());
}
