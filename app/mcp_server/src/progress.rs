//! Progress and tool activity of a run, as reported to the client.

use std::time::Duration;

use harness::client::{EventKind, StreamEvent};
use serde_json::{Value, json};
use tokio::time::Instant;

/// Minimum interval between reports, and the interval of checks.
pub(crate) const MIN_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum interval between reports: clients time out calls without progress.
const MAX_SILENCE: Duration = Duration::from_secs(15);
/// Maximum length of reported tool arguments and results, in characters.
const MAX_EXCERPT_CHARS: usize = 400;

/// Tool call or tool result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Activity {
    /// `true` if the tool failed.
    pub(crate) is_problem: bool,
    /// Payload of the log message.
    pub(crate) data: Value,
}

/// Progress of one run.
#[derive(Debug)]
pub(crate) struct RunProgress {
    /// Current status text.
    status: String,
    has_changed: bool,
    /// Number of reports so far, and the time of the last one.
    reports_sent: u32,
    last_report: Instant,
}

impl RunProgress {
    /// Creates the progress of a run that has just started.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            status: "the agent is working".to_owned(),
            has_changed: true,
            reports_sent: 0,
            last_report: now,
        }
    }

    /// Updates the progress with an event, and returns the tool activity in it.
    pub(crate) fn observe(&mut self, event: &StreamEvent) -> Vec<Activity> {
        if event.text().is_some() {
            self.set_status("the agent is writing".to_owned());
            return Vec::new();
        }
        if event.kind != EventKind::MessagesTuple {
            return Vec::new();
        }
        if event.data["type"] == "tool" {
            return vec![self.result(&event.data)];
        }
        let calls = event.data["tool_calls"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        calls.iter().map(|call| self.call(call)).collect()
    }

    /// Returns the report that is due, if any: an increasing number and the status text.
    pub(crate) fn due_report(&mut self, now: Instant) -> Option<(u32, String)> {
        let is_due = match self.reports_sent {
            0 => true,
            _ if self.has_changed => now >= self.last_report + MIN_INTERVAL,
            _ => now >= self.last_report + MAX_SILENCE,
        };
        if !is_due {
            return None;
        }
        self.has_changed = false;
        self.reports_sent = self.reports_sent.saturating_add(1);
        self.last_report = now;
        Some((self.reports_sent, self.status.clone()))
    }

    /// Sets the status of a run that waits for the user.
    pub(crate) fn mark_waiting(&mut self) {
        self.set_status("the agent is waiting for the user's answer".to_owned());
    }

    fn set_status(&mut self, status: String) {
        if self.status != status {
            self.status = status;
            self.has_changed = true;
        }
    }

    fn call(&mut self, call: &Value) -> Activity {
        let name = call["name"].as_str().unwrap_or_default();
        self.set_status(format!("the agent is calling {name}"));
        Activity {
            is_problem: false,
            data: json!({ "event": "call", "tool": name, "arguments": excerpt(&call["args"].to_string()) }),
        }
    }

    fn result(&mut self, result: &Value) -> Activity {
        let (name, is_problem) = (
            result["name"].as_str().unwrap_or_default(),
            result["status"] == "error",
        );
        self.set_status(format!(
            "{name} {}",
            if is_problem { "failed" } else { "has finished" }
        ));
        let text = excerpt(result["content"].as_str().unwrap_or_default());
        Activity {
            is_problem,
            data: json!({ "event": "result", "tool": name, "status": result["status"], "result": text }),
        }
    }
}

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(MAX_EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
