//! Decides when a conversation is summarized and which messages stay unchanged. Pure.

use super::view::View;
use crate::config::{ContextSize, ContextUnit, SummarizationConfig};
use crate::messages::Message;
use crate::models::TokenFamily;

/// Divisor for the minimum share of the visible messages that an automatic cut must cover.
const MIN_CUT_DIVISOR: usize = 4;

/// Compaction policy for one model.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Triggers; reaching any of these sizes requires a compaction.
    pub triggers: Vec<ContextSize>,
    /// Size of the part that stays unchanged.
    pub keep: ContextSize,
    /// Context window of the model, in tokens.
    pub window: Option<u64>,
    /// Tokenizer family of the model.
    pub family: TokenFamily,
}

impl Policy {
    /// Creates the configured policy for a model of this family and window.
    pub fn new(config: &SummarizationConfig, window: Option<u64>, family: TokenFamily) -> Self {
        Self {
            triggers: config.triggers().to_vec(),
            keep: config.keep,
            window,
            family,
        }
    }

    /// Reports whether the model's view has reached a trigger.
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

    /// Returns the tokens of a view: the provider's count plus an estimate for later messages, but
    /// at least the estimate for the whole view.
    pub fn tokens(&self, view: &View<'_>) -> u64 {
        let estimated = self.family.tokens(view.size());
        view.counted().map_or(estimated, |(counted, since)| {
            estimated.max(counted + self.family.tokens_of(since))
        })
    }

    /// Returns the position in [`View::kept`] at which to cut, or `None` if too little would be
    /// removed. `keep` replaces the configured size.
    ///
    /// The remaining part is never more than half of a trigger, because otherwise the next message
    /// would require another cut.
    pub fn cut(&self, view: &View<'_>, keep: Option<ContextSize>) -> Option<usize> {
        let kept = view.kept();
        let requested = self.start_of(kept, keep.unwrap_or(self.keep));
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
            .fold(requested, usize::max)
            .min(kept.len().saturating_sub(1));
        let at = pair_safe(kept, at);
        // A summary of a single message has no benefit, and frequent small summaries cost more than
        // they save.
        let is_worth_it = keep.is_some()
            || at * MIN_CUT_DIVISOR >= kept.len()
            || self.size_of(&kept[..at]) * MIN_CUT_DIVISOR as u64 >= self.size_of(kept);
        (at >= 2 && at < kept.len() && is_worth_it).then_some(at)
    }

    fn size_of(&self, messages: &[Message]) -> u64 {
        self.family.tokens_of(messages)
    }

    /// Converts a size to tokens; `None` if it is in messages, or a fraction of an unknown window.
    fn in_tokens(&self, size: ContextSize) -> Option<u64> {
        match size.unit {
            ContextUnit::Messages => None,
            ContextUnit::Tokens => Some(size.value as u64),
            ContextUnit::Fraction => self
                .window
                .map(|window| (window as f64 * size.value) as u64),
        }
    }

    /// Returns the position from which at most `size` remains. A fraction of an unknown window is
    /// no limit.
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
        let mut remaining = tokens;
        let fits =
            |message: &&Message| match remaining.checked_sub(self.family.tokens(message.size())) {
                Some(rest) => {
                    remaining = rest;
                    true
                }
                None => false,
            };
        messages.len() - messages.iter().rev().take_while(fits).count()
    }
}

/// Returns the nearest position that separates no call from its result: before the answer with the
/// call, or, if there is none, behind the results.
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
