//! Adds up what a run costs: every model call once, split by who asked.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::messages::UsageMetadata;
use crate::runtime::agent::{AgentEvent, ModelCallRecord};
use crate::runtime::runs::RunCompletionData;

/// The longest excerpt kept of a question or an answer, in characters.
const EXCERPT_CHARS: usize = 2_000;

/// The token count of one run.
#[derive(Debug, Default)]
pub(crate) struct RunTokenCallback {
    counted: HashSet<String>,
    totals: RunCompletionData,
    by_model: Map<String, Value>,
}

impl RunTokenCallback {
    pub(crate) fn hear(&mut self, event: &AgentEvent) {
        let AgentEvent::ModelCall(call) = event else { return };
        if call.caller == "lead_agent" {
            let text = call.message.content.text();
            if !text.is_empty() {
                self.totals.last_ai_message = Some(excerpt(&text));
            }
        }
        if let Some(usage) = &call.usage
            && self.counted.insert(call.call_id.clone())
        {
            self.count(call, usage);
        }
    }

    fn count(&mut self, call: &ModelCallRecord, usage: &UsageMetadata) {
        let total = usage.total();
        self.totals.llm_call_count += 1;
        self.totals.total_input_tokens += usage.input_tokens;
        self.totals.total_output_tokens += usage.output_tokens;
        self.totals.total_tokens += total;
        match call.caller.split(':').next() {
            Some("subagent") => self.totals.subagent_tokens += total,
            Some("middleware") => self.totals.middleware_tokens += total,
            _ => self.totals.lead_agent_tokens += total,
        }
        let held = self.by_model.get(&call.model);
        let part = |key: &str| held.and_then(|held| held.get(key)).and_then(Value::as_u64).unwrap_or(0);
        let entry = json!({
            "input_tokens": part("input_tokens") + usage.input_tokens,
            "output_tokens": part("output_tokens") + usage.output_tokens,
            "total_tokens": part("total_tokens") + total,
        });
        self.by_model.insert(call.model.clone(), entry);
    }

    /// The whole completion data; messages are counted by the journal.
    pub(crate) fn completion_data(&self, message_count: u64, first_human: Option<String>) -> RunCompletionData {
        RunCompletionData {
            message_count,
            first_human_message: first_human.map(|text| excerpt(&text)),
            token_usage_by_model: self.by_model.clone(),
            ..self.totals.clone()
        }
    }
}

fn excerpt(text: &str) -> String {
    text.chars().take(EXCERPT_CHARS).collect()
}
