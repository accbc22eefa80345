//! Sums up the usage of a run: each model call once, split by caller.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::agent::{AgentEvent, ModelCallRecord};
use crate::definition::RunCompletionData;
use deerflow_core::messages::UsageMetadata;

/// Maximum length of the stored excerpt of a message, in characters.
pub(super) const EXCERPT_CHARS: usize = 2_000;

/// Usage of one run.
#[derive(Debug, Default)]
pub(crate) struct RunTokenCallback {
    counted: HashSet<String>,
    totals: RunCompletionData,
    by_model: Map<String, Value>,
}

impl RunTokenCallback {
    pub(crate) fn on_event(&mut self, event: &AgentEvent) {
        let AgentEvent::ModelCall(call) = event else {
            return;
        };
        if let Some(usage) = &call.usage
            && self.counted.insert(call.call_id.clone())
        {
            self.count(call, usage);
        }
    }

    fn count(&mut self, call: &ModelCallRecord, usage: &UsageMetadata) {
        let total = usage.total();
        let totals = &mut self.totals;
        let of_caller = match call.caller.split(':').next() {
            Some("subagent") => &mut totals.subagent_tokens,
            Some("middleware") => &mut totals.middleware_tokens,
            _ => &mut totals.lead_agent_tokens,
        };
        add(of_caller, total);
        add(&mut totals.llm_call_count, 1);
        add(&mut totals.total_input_tokens, usage.input_tokens);
        add(&mut totals.total_output_tokens, usage.output_tokens);
        add(&mut totals.total_tokens, total);
        let previous = self.by_model.get(&call.model);
        let part = |key: &str| {
            previous
                .and_then(|previous| previous.get(key))
                .and_then(Value::as_u64)
                .unwrap_or(0)
        };
        let mut entry = json!({
            "input_tokens": part("input_tokens").saturating_add(usage.input_tokens),
            "output_tokens": part("output_tokens").saturating_add(usage.output_tokens),
            "total_tokens": part("total_tokens").saturating_add(total),
        });
        let cached = part("cache_read_tokens").saturating_add(usage.cache_read());
        if cached > 0 {
            entry["cache_read_tokens"] = cached.into();
        }
        self.by_model.insert(call.model.clone(), entry);
    }

    /// Builds the completion data. The journal supplies the number of messages, and excerpts of the
    /// first human message and the last answer.
    pub(crate) fn completion_data(
        &self,
        message_count: u64,
        (question, answer): (Option<String>, Option<String>),
    ) -> RunCompletionData {
        RunCompletionData {
            message_count,
            first_human_message: question,
            last_ai_message: answer,
            token_usage_by_model: self.by_model.clone(),
            ..self.totals.clone()
        }
    }
}

/// Adds `added` to `sum` and saturates, because providers may report any number.
fn add(sum: &mut u64, added: u64) {
    *sum = sum.saturating_add(added);
}

#[cfg(test)]
mod tests {
    use super::*;
    use deerflow_core::messages::Message;

    #[test]
    fn token_counts_saturate() {
        let mut tokens = RunTokenCallback::default();
        for call_id in ["a", "b"] {
            let usage = UsageMetadata {
                input_tokens: u64::MAX,
                output_tokens: u64::MAX,
                ..UsageMetadata::default()
            };
            tokens.on_event(&AgentEvent::ModelCall(ModelCallRecord {
                call_id: call_id.to_owned(),
                caller: "lead_agent".to_owned(),
                model: "m".to_owned(),
                message: Message::ai("x"),
                usage: Some(usage),
                latency_ms: 1,
            }));
        }
        let once = tokens.completion_data(1, (None, None));
        let all = once.clone().and(once);
        assert_eq!(
            (all.total_tokens, all.lead_agent_tokens, all.llm_call_count),
            (u64::MAX, u64::MAX, 4)
        );
        assert_eq!(
            all.token_usage_by_model["m"]["input_tokens"],
            json!(u64::MAX)
        );
    }
}
