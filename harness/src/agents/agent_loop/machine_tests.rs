//! The machine alone: walks through it with every outcome chance can think of.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::ids::SeededIds;
use crate::messages::{Message, MessageKind, ToolCall, ToolStatus};
use crate::state::StateUpdate;

/// What the world does at one step of a walk.
#[derive(Debug, Clone)]
struct Chance {
    jump: Option<Jump>,
    /// How many calls the model makes.
    calls: usize,
    /// Which of the calls ask instead of answering; the others end.
    asks: u8,
    goto_end: bool,
}

fn any_chance() -> impl Strategy<Value = Chance> {
    let jump = prop_oneof![6 => Just(None), 1 => Just(Some(Jump::Model)), 1 => Just(Some(Jump::Tools)), 1 => Just(Some(Jump::End))];
    (jump, 0_usize..4, any::<u8>(), prop::bool::weighted(0.1)).prop_map(
        |(jump, calls, asks, goto_end)| Chance {
            jump,
            calls,
            asks: asks & asks.rotate_left(3),
            goto_end,
        },
    )
}

fn nodes(hooks: [bool; 8]) -> Arc<LoopNodes> {
    let of = |phase: Phase| {
        let mine = (0..2).filter(move |nth| hooks[phase as usize * 2 + nth]);
        mine.map(|nth| (format!("M{nth}"), nth)).collect()
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

/// A machine with a state to walk on.
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

    /// Does the step as chance has it; tells whether the machine had stopped.
    fn go(&mut self, step: Step, chance: &Chance) -> bool {
        match step {
            Step::Hook { .. } => self.machine.hook_done(chance.jump, &self.state),
            Step::CallModel => {
                let call = |nth| {
                    ToolCall::new(
                        format!("{}-{nth}", self.machine.steps()),
                        "t",
                        Default::default(),
                    )
                };
                let calls = (0..chance.calls).map(call).collect();
                let kind = MessageKind::Ai {
                    tool_calls: calls,
                    invalid_tool_calls: vec![],
                    usage_metadata: None,
                };
                self.add(vec![Message::ai("").with(|body| body.kind = kind)]);
                self.machine.model_done(&self.state);
            }
            Step::CallTools(due) => {
                let (asking, answering): (Vec<_>, Vec<_>) = due
                    .into_iter()
                    .enumerate()
                    .partition(|(nth, _)| chance.asks >> nth & 1 == 1);
                self.add(
                    answering
                        .iter()
                        .map(|(_, due)| Message::tool(&due.call, "r", ToolStatus::Success))
                        .collect(),
                );
                let ask = |due: DueCall| NewQuestion {
                    call_id: due.call.id.clone(),
                    id: due.call.id.clone(),
                    question: json!("?"),
                    of_approval: false,
                };
                let questions = asking.into_iter().map(|(_, due)| ask(due)).collect();
                self.machine.tools_done(ToolsDone {
                    goto_end: chance.goto_end,
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
    fn every_walk_ends_and_each_step_counts_one(hooks: [bool; 8], chances in prop::collection::vec(any_chance(), 1..20), limit in 1_u64..60) {
        let mut walk = Walk::new(nodes(hooks), limit);
        for chance in chances.iter().cycle() {
            let step = walk.machine.next_step(&walk.state);
            let (before, works) = (walk.machine.steps(), matches!(step, Step::Hook { .. } | Step::CallModel | Step::CallTools(_)));
            if walk.go(step, chance) {
                break;
            }
            prop_assert_eq!(walk.machine.steps(), before + u64::from(works));
            prop_assert!(walk.machine.steps() <= limit);
        }
    }

    #[test]
    fn a_machine_that_was_saved_goes_on_as_if_it_had_not_been(hooks: [bool; 8], chances in prop::collection::vec(any_chance(), 1..30)) {
        let nodes = nodes(hooks);
        let mut walk = Walk::new(nodes.clone(), 1_000);
        for chance in &chances {
            let restored = LoopMachine::restore(nodes.clone(), bounds(1_000), walk.machine.save()).unwrap();
            let step = walk.machine.next_step(&walk.state);
            prop_assert_eq!(restored.next_step(&walk.state), step.clone());
            prop_assert_eq!(restored.due(&walk.state), walk.machine.due(&walk.state));
            walk.machine = restored;
            if walk.go(step, chance) {
                break;
            }
        }
    }
}

#[test]
fn the_steps_of_a_run_stand_in_their_order() {
    let mut walk = Walk::new(nodes([true; 8]), 100);
    let calm = |calls| Chance {
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
        if walk.go(step, &calm(calls)) {
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
    let wanted = [
        &["M0.before_agent", "M1.before_agent"],
        &round[..],
        &["tools"],
        &round,
        &["M0.after_agent", "M1.after_agent", "__end__"],
    ];
    assert_eq!(order, wanted.concat());
}
