//! Counts the usage of a nested agent, and the answers that it received.

use serde_json::{Value, json};

use super::agents::NodeAgents;
use crate::agents::NestedListener;
use crate::flow::adapter::Usage;
use crate::runtime::agent::{AgentEvent, ModelCallRecord, TokenCount};

/// Listener of one attempt of a turn.
#[derive(Debug)]
pub(super) struct TurnListener<'a> {
    agents: &'a dyn NodeAgents,
    tokens: TokenCount,
    /// Cost of the calls with a price.
    cost_usd: Option<f64>,
    /// `true` if a call has no price.
    has_unpriced: bool,
    /// Answers that the agent has received in all attempts.
    answered: usize,
}

impl<'a> TurnListener<'a> {
    pub(super) fn new(agents: &'a dyn NodeAgents, answered: usize) -> Self {
        Self {
            agents,
            tokens: TokenCount::default(),
            cost_usd: None,
            has_unpriced: false,
            answered,
        }
    }

    /// Reports whether the cost of this attempt is only a part of it.
    pub(super) fn is_cost_partial(&self) -> bool {
        self.has_unpriced && self.cost_usd.is_some()
    }

    fn add(&mut self, call: &ModelCallRecord) {
        let Some(usage) = &call.usage else { return };
        self.tokens = self.tokens.and(usage);
        match self.agents.cost_usd(&call.model, usage) {
            Some(cost) => *self.cost_usd.get_or_insert_default() += cost,
            None => self.has_unpriced = true,
        }
    }

    /// Returns the tokens and the cost of this attempt.
    pub(super) fn usage(&self) -> Usage {
        Usage {
            input_tokens: self.tokens.input_tokens,
            output_tokens: self.tokens.output_tokens,
            total_tokens: self.tokens.total_tokens,
            cost_usd: self.cost_usd,
        }
    }
}

impl NestedListener for TurnListener<'_> {
    fn hear(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::ModelCall(call) => self.add(call),
            AgentEvent::Nested(_, event) => self.hear(event),
            _ => {}
        }
    }

    fn keep(&self) -> Value {
        json!(self.answered)
    }
}
