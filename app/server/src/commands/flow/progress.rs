//! Progress of a run as lines for people.

use std::collections::HashMap;

use deerflow_flow::adapter::Usage;
use deerflow_flow::events::{EventBody, FlowEvent};
use deerflow_flow::machine::add_usage;

use super::report::one_line;

/// Progress of a run, derived from its events.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Kind and usage of the nodes at work.
    active: HashMap<String, (String, Usage)>,
    total: Usage,
}

impl Progress {
    /// Adds an event. Returns a line for the end of a visit, a retry and a warning.
    pub(super) fn add(&mut self, event: &FlowEvent) -> Option<String> {
        let node = event.node_id.as_deref()?;
        let line = match &event.body {
            EventBody::NodeStarted { kind, .. } => {
                let entry = (kind.clone(), Usage::default());
                self.active.insert(node.to_owned(), entry);
                return None;
            }
            EventBody::TurnCompleted { usage, .. } | EventBody::TurnFailed { usage, .. } => {
                add_usage(&mut self.total, usage);
                if let Some((_, of_node)) = self.active.get_mut(node) {
                    add_usage(of_node, usage);
                }
                return None;
            }
            EventBody::NodeCompleted {
                action,
                duration_ms,
                ..
            } => {
                let action = action.as_ref().map(|action| format!("  {action}"));
                let ended = self.ended(node, *duration_ms);
                format!("{ended}{}", action.unwrap_or_default())
            }
            EventBody::NodeFailed {
                error,
                handled,
                duration_ms,
                ..
            } => {
                let handled = if *handled { " (handled)" } else { "" };
                let ended = self.ended(node, *duration_ms);
                format!(
                    "{ended}  failed{handled}: {}: {}",
                    error.code, error.message
                )
            }
            EventBody::NodeRetry { attempt, delay_ms } => {
                format!("{node}  attempt {attempt} in {delay_ms} ms")
            }
            EventBody::Warning { code, message } => {
                format!("{node}  warning {code}: {message}")
            }
            _ => return None,
        };
        Some(one_line(&line))
    }

    /// Returns the tokens and cost of all turns, for people.
    pub(super) fn total(&self) -> String {
        tokens(&self.total)
    }

    fn ended(&mut self, node: &str, duration_ms: u64) -> String {
        let (kind, usage) = self.active.remove(node).unwrap_or_default();
        let spent = match usage.total_tokens {
            0 => String::new(),
            _ => format!("  {}", tokens(&usage)),
        };
        format!("{node}  {kind}  {duration_ms} ms{spent}")
    }
}

fn tokens(usage: &Usage) -> String {
    let cost = usage.cost_usd.map(|cost| format!(", {cost:.4} USD"));
    format!("{} tokens{}", usage.total_tokens, cost.unwrap_or_default())
}
