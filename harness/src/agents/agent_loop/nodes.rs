//! The nodes of an agent's loop and their order, fixed by its middlewares.

use crate::middlewares::{MiddlewareStack, Phase};

/// A place in the loop: the node that is due there, or the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The n-th hook of a phase, in the order in which the phase's hooks run.
    Hook(Phase, usize),
    /// The model.
    Model,
    /// The tools.
    Tools,
    /// Nothing is due.
    End,
}

/// One hook that some middleware has.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HookNode {
    /// `<Middleware>.<hook>`.
    name: String,
    /// The middleware's place in the stack.
    middleware: usize,
}

/// All nodes of one agent's loop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoopNodes {
    phases: [Vec<HookNode>; 4],
}

/// The model's node.
pub(super) const MODEL: &str = "model";
/// The tools' node.
pub(super) const TOOLS: &str = "tools";
/// The place before everything; no node of the loop.
pub(super) const START: &str = "__start__";
/// The place after everything; no node of the loop.
pub(super) const END: &str = "__end__";

impl LoopNodes {
    /// The nodes of an agent with these middlewares.
    pub fn of(stack: &MiddlewareStack) -> Self {
        Self::with_hooks(|phase| {
            stack
                .hooked(phase)
                .into_iter()
                .map(|at| (stack.name(at).to_owned(), at))
                .collect()
        })
    }

    /// Nodes from the hooks of each phase: middleware name and place in the stack, in the order in which they run.
    pub fn with_hooks(hooks: impl Fn(Phase) -> Vec<(String, usize)>) -> Self {
        let node = |phase: Phase| {
            move |(name, middleware)| HookNode {
                name: format!("{name}.{}", phase.as_str()),
                middleware,
            }
        };
        Self {
            phases: Phase::ALL.map(|phase| hooks(phase).into_iter().map(node(phase)).collect()),
        }
    }

    /// The name of the node that is due at `place`.
    pub fn name(&self, place: Place) -> &str {
        match place {
            Place::Hook(phase, nth) => self.phase(phase).get(nth).map_or(END, |node| &node.name),
            Place::Model => MODEL,
            Place::Tools => TOOLS,
            Place::End => END,
        }
    }

    /// The place where the node of this name is due.
    pub fn place(&self, name: &str) -> Option<Place> {
        match name {
            MODEL => return Some(Place::Model),
            TOOLS => return Some(Place::Tools),
            END => return Some(Place::End),
            _ => {}
        }
        Phase::ALL.into_iter().find_map(|phase| {
            let nth = self
                .phase(phase)
                .iter()
                .position(|node| node.name == name)?;
            Some(Place::Hook(phase, nth))
        })
    }

    /// The stack place of the middleware whose hook this is.
    pub fn middleware(&self, phase: Phase, nth: usize) -> Option<usize> {
        self.phase(phase).get(nth).map(|node| node.middleware)
    }

    /// Where a run begins.
    pub fn entry(&self) -> Place {
        self.hook_or(Phase::BeforeAgent, 0, || self.loop_entry())
    }

    /// Where every round of the loop begins.
    pub fn loop_entry(&self) -> Place {
        self.hook_or(Phase::BeforeModel, 0, || Place::Model)
    }

    /// Where the end begins.
    pub fn exit(&self) -> Place {
        self.hook_or(Phase::AfterAgent, 0, || Place::End)
    }

    /// The n-th hook of a phase, or what follows the phase.
    pub fn hook_or(&self, phase: Phase, nth: usize, otherwise: impl FnOnce() -> Place) -> Place {
        if nth < self.phase(phase).len() {
            Place::Hook(phase, nth)
        } else {
            otherwise()
        }
    }

    /// The names of all nodes: a run's order as far as it has one.
    pub fn names(&self) -> Vec<String> {
        let hooks = |phase| {
            self.phase(phase)
                .iter()
                .map(|node: &HookNode| node.name.clone())
        };
        let before = hooks(Phase::BeforeAgent)
            .chain(hooks(Phase::BeforeModel))
            .chain([MODEL.to_owned()]);
        before
            .chain(hooks(Phase::AfterModel))
            .chain([TOOLS.to_owned()])
            .chain(hooks(Phase::AfterAgent))
            .collect()
    }

    fn phase(&self, phase: Phase) -> &[HookNode] {
        &self.phases[phase as usize]
    }
}
