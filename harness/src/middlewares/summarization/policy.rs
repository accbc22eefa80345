//! When a conversation is summarized, and from where on it is kept as it is: pure decisions.

use super::view::View;
use crate::config::{ContextSize, ContextUnit, SummarizationConfig};
use crate::messages::Message;
use crate::models::TokenFamily;

/// The least part of what is kept that is summarized unasked: one in so many.
const FAIR_PART: usize = 4;

/// The rules for one model.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Sizes any of which is too large.
    pub triggers: Vec<ContextSize>,
    /// How much stays as it is.
    pub keep: ContextSize,
    /// The tokens that one call of the model takes.
    pub window: Option<u64>,
    /// How the model counts.
    pub family: TokenFamily,
}

impl Policy {
    /// The rules of a configuration for a model of this family and window.
    pub fn new(config: &SummarizationConfig, window: Option<u64>, family: TokenFamily) -> Self {
        Self {
            triggers: config.triggers().to_vec(),
            keep: config.keep,
            window,
            family,
        }
    }

    /// Whether the model's view has grown too large.
    pub fn is_due(&self, view: &View<'_>) -> bool {
        if self.triggers.is_empty() {
            return false;
        }
        let tokens = self.tokens(view);
        let messages = view.kept().len() as u64;
        self.triggers.iter().any(|trigger| match trigger.unit {
            ContextUnit::Messages => messages as f64 >= trigger.value,
            _ => self
                .in_tokens(*trigger)
                .is_some_and(|limit| tokens >= limit),
        })
    }

    /// The tokens of a view: what the provider counted as far as it went, the rest estimated.
    pub fn tokens(&self, view: &View<'_>) -> u64 {
        let estimated = self.family.tokens(view.size());
        view.counted().map_or(estimated, |(counted, since)| {
            estimated.max(counted + self.family.tokens_of(since))
        })
    }

    /// Where to cut [`View::kept`], or nothing when too little would go. `keep` stands in for the configured size.
    ///
    /// What is kept is never more than half of what is too large, for else a cut would be due again with the next message.
    pub fn cut(&self, view: &View<'_>, keep: Option<ContextSize>) -> Option<usize> {
        let kept = view.kept();
        let wanted = self.start_of(kept, keep.unwrap_or(self.keep));
        let halves = self.triggers.iter().map(|trigger| {
            let half = ContextSize {
                value: trigger.value / 2.0,
                ..*trigger
            };
            self.start_of(kept, half)
        });
        let room = self
            .window
            .map(|window| self.start_within(kept, window / 2));
        let at = halves
            .chain(room)
            .fold(wanted, usize::max)
            .min(kept.len().saturating_sub(1));
        let at = pair_safe(kept, at);
        // A summary of a single message says no less than the message, and one of few more with every step costs more than it saves.
        let is_worth_it = keep.is_some()
            || at * FAIR_PART >= kept.len()
            || self.size_of(&kept[..at]) * FAIR_PART as u64 >= self.size_of(kept);
        (at >= 2 && at < kept.len() && is_worth_it).then_some(at)
    }

    fn size_of(&self, messages: &[Message]) -> u64 {
        self.family.tokens_of(messages)
    }

    /// A size in tokens; `None` where it is no such size.
    fn in_tokens(&self, size: ContextSize) -> Option<u64> {
        match size.unit {
            ContextUnit::Messages => None,
            ContextUnit::Tokens => Some(size.value as u64),
            ContextUnit::Fraction => self
                .window
                .map(|window| (window as f64 * size.value) as u64),
        }
    }

    /// The place from which on at most `size` is left. A share of an unknown window is no limit.
    fn start_of(&self, messages: &[Message], size: ContextSize) -> usize {
        match (size.unit, self.in_tokens(size)) {
            (ContextUnit::Messages, _) => {
                messages.len().saturating_sub((size.value as usize).max(1))
            }
            (_, Some(tokens)) => self.start_within(messages, tokens),
            (_, None) => 0,
        }
    }

    fn start_within(&self, messages: &[Message], tokens: u64) -> usize {
        let mut left = tokens;
        let fits = |message: &&Message| match left.checked_sub(self.family.tokens(message.size())) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        };
        messages.len() - messages.iter().rev().take_while(fits).count()
    }
}

/// The nearest place that splits no call from its result: before the answer that made the call, or, where there is none, behind
/// the results.
pub(super) fn pair_safe(messages: &[Message], at: usize) -> usize {
    let Some(call) = messages.get(at).and_then(Message::tool_call_id) else {
        return at;
    };
    let caller = messages[..at]
        .iter()
        .rposition(|message| message.call_ids().any(|made| made == call));
    caller.unwrap_or_else(|| {
        let results = messages[at..]
            .iter()
            .take_while(|message| message.tool_call_id().is_some())
            .count();
        at + results
    })
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
