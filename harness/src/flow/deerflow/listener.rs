//! Counts the usage of a nested agent, and the answers that it received.

use serde_json::{Value, json};

use crate::agents::NestedListener;
use crate::flow::adapter::Usage;
use crate::runtime::agent::{AgentEvent, TokenCount};

/// Listener of one attempt of a turn.
#[derive(Debug)]
pub(super) struct TurnListener {
    tokens: TokenCount,
    /// Answers that the agent has received in all attempts.
    answered: usize,
}

impl TurnListener {
    pub(super) fn new(answered: usize) -> Self {
        Self {
            tokens: TokenCount::default(),
            answered,
        }
    }

    /// Returns the tokens of this attempt.
    pub(super) fn usage(&self) -> Usage {
        Usage {
            input_tokens: self.tokens.input_tokens,
            output_tokens: self.tokens.output_tokens,
            total_tokens: self.tokens.total_tokens,
            cost_usd: None,
        }
    }
}

impl NestedListener for TurnListener {
    fn hear(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::ModelCall(call) => {
                let add = |sum: TokenCount, usage| sum.and(usage);
                self.tokens = call.usage.iter().fold(self.tokens, add);
            }
            AgentEvent::Nested(_, event) => self.hear(event),
            _ => {}
        }
    }

    fn keep(&self) -> Value {
        json!(self.answered)
    }
}
