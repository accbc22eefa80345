//! Nodes of an agent's loop and their order, which its middlewares define.

use crate::middlewares::{MiddlewareStack, Phase};

/// Position in the loop: the next node, or the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopPosition {
    /// The n-th hook of a phase, in execution order.
    Hook(Phase, usize),
    /// The model node.
    Model,
    /// The tools node.
    Tools,
    /// The end: no node is pending.
    End,
}

/// One hook of a middleware.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HookNode {
    /// `<Middleware>.<hook>`.
    name: String,
    /// Index of the middleware in the stack.
    middleware: usize,
}

/// All nodes of one agent's loop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoopNodes {
    phases: [Vec<HookNode>; 4],
}

/// Name of the model node.
pub(super) const MODEL: &str = "model";
/// Name of the tools node.
pub(super) const TOOLS: &str = "tools";
/// Name of the position before the first node; not a node itself.
pub(super) const START: &str = "__start__";
/// Name of the position after the last node; not a node itself.
pub(super) const END: &str = "__end__";

impl LoopNodes {
    /// Builds the nodes of an agent with these middlewares.
    pub fn of(stack: &MiddlewareStack) -> Self {
        Self::with_hooks(|phase| {
            stack
                .hooked(phase)
                .into_iter()
                .map(|at| (stack.name(at).to_owned(), at))
                .collect()
        })
    }

    /// Builds nodes from the hooks of each phase: middleware name and index in the stack, in
    /// execution order.
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

    /// Returns the name of the node at `position`.
    pub fn name(&self, position: LoopPosition) -> &str {
        match position {
            LoopPosition::Hook(phase, nth) => {
                self.phase(phase).get(nth).map_or(END, |node| &node.name)
            }
            LoopPosition::Model => MODEL,
            LoopPosition::Tools => TOOLS,
            LoopPosition::End => END,
        }
    }

    /// Returns the position of the node with this name.
    pub fn position(&self, name: &str) -> Option<LoopPosition> {
        match name {
            MODEL => return Some(LoopPosition::Model),
            TOOLS => return Some(LoopPosition::Tools),
            END => return Some(LoopPosition::End),
            _ => {}
        }
        Phase::ALL.into_iter().find_map(|phase| {
            let nth = self
                .phase(phase)
                .iter()
                .position(|node| node.name == name)?;
            Some(LoopPosition::Hook(phase, nth))
        })
    }

    /// Returns the stack index of the middleware that owns this hook.
    pub fn middleware(&self, phase: Phase, nth: usize) -> Option<usize> {
        self.phase(phase).get(nth).map(|node| node.middleware)
    }

    /// Returns the position at which a run begins.
    pub fn entry(&self) -> LoopPosition {
        self.hook_or(Phase::BeforeAgent, 0, || self.loop_entry())
    }

    /// Returns the position at which every round of the loop begins.
    pub fn loop_entry(&self) -> LoopPosition {
        self.hook_or(Phase::BeforeModel, 0, || LoopPosition::Model)
    }

    /// Returns the position at which the end of a run begins: the `after_agent` hooks, or the end
    /// itself.
    pub fn exit(&self) -> LoopPosition {
        self.hook_or(Phase::AfterAgent, 0, || LoopPosition::End)
    }

    /// Returns the n-th hook of a phase, or `otherwise` if the phase has no such hook.
    pub fn hook_or(
        &self,
        phase: Phase,
        nth: usize,
        otherwise: impl FnOnce() -> LoopPosition,
    ) -> LoopPosition {
        if nth < self.phase(phase).len() {
            LoopPosition::Hook(phase, nth)
        } else {
            otherwise()
        }
    }

    /// Returns the names of all nodes, in execution order where it is fixed.
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
