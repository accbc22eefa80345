//! What a client is told of a run while it is at work: how far it is, and what the agent does.

use std::time::Duration;

use harness::client::{EventKind, StreamEvent};
use serde_json::{Value, json};
use tokio::time::Instant;

/// How often there is news at most, and how often somebody looks for it.
pub(super) const PACE: Duration = Duration::from_millis(500);
/// How long a run is silent at most: clients give up calls of which they hear nothing.
const LONGEST_SILENCE: Duration = Duration::from_secs(15);
/// How much of a tool's arguments and of its result is told, in characters.
const SHOWN: usize = 400;

/// What the agent did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Activity {
    /// Whether it went wrong.
    pub(super) is_problem: bool,
    /// What it was.
    pub(super) data: Value,
}

/// What there is to tell of a run.
#[derive(Debug)]
pub(super) struct News {
    /// What the agent does.
    doing: String,
    is_new: bool,
    /// How often something was told, and when last.
    told: u32,
    at: Instant,
}

impl News {
    /// Of a run that begins.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            doing: "the agent is at work".to_owned(),
            is_new: true,
            told: 0,
            at: now,
        }
    }

    /// Takes an event in; gives what the agent did by it.
    pub(super) fn take(&mut self, event: &StreamEvent) -> Vec<Activity> {
        if event.text().is_some() {
            self.say("the agent writes".to_owned());
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

    /// What is due to be told of how far the run is: a number that grows, and what the agent does.
    pub(super) fn progress(&mut self, now: Instant) -> Option<(u32, String)> {
        let is_due = match self.told {
            0 => true,
            _ if self.is_new => now >= self.at + PACE,
            _ => now >= self.at + LONGEST_SILENCE,
        };
        if !is_due {
            return None;
        }
        self.is_new = false;
        self.told = self.told.saturating_add(1);
        self.at = now;
        Some((self.told, self.doing.clone()))
    }

    /// Takes in that the run waits for a person.
    pub(super) fn wait(&mut self) {
        self.say("the agent waits for a person's answer".to_owned());
    }

    fn say(&mut self, doing: String) {
        if self.doing != doing {
            self.doing = doing;
            self.is_new = true;
        }
    }

    fn call(&mut self, call: &Value) -> Activity {
        let name = call["name"].as_str().unwrap_or_default();
        self.say(format!("the agent calls {name}"));
        Activity {
            is_problem: false,
            data: json!({ "event": "call", "tool": name, "arguments": cut(&call["args"].to_string()) }),
        }
    }

    fn result(&mut self, result: &Value) -> Activity {
        let (name, is_problem) = (
            result["name"].as_str().unwrap_or_default(),
            result["status"] == "error",
        );
        self.say(format!(
            "{name} {}",
            if is_problem { "failed" } else { "is done" }
        ));
        let text = cut(result["content"].as_str().unwrap_or_default());
        Activity {
            is_problem,
            data: json!({ "event": "result", "tool": name, "status": result["status"], "result": text }),
        }
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(data: Value) -> StreamEvent {
        StreamEvent {
            kind: EventKind::MessagesTuple,
            data,
        }
    }

    fn call(name: &str) -> StreamEvent {
        event(
            json!({ "type": "ai", "content": "", "id": "a", "tool_calls": [{ "name": name, "args": { "path": "ü".repeat(900) }, "id": "c" }] }),
        )
    }

    #[test]
    fn the_first_news_is_told_at_once_and_what_follows_at_a_pace() {
        let begin = Instant::now();
        let mut news = News::new(begin);
        assert_eq!(
            news.progress(begin),
            Some((1, "the agent is at work".to_owned()))
        );
        news.take(&call("ls"));
        assert_eq!(news.progress(begin + PACE / 2), None);
        news.take(&event(
            json!({ "type": "tool", "name": "ls", "content": "a", "status": "success" }),
        ));
        assert_eq!(
            news.progress(begin + PACE),
            Some((2, "ls is done".to_owned()))
        );
        assert_eq!(
            news.progress(begin + PACE * 3),
            None,
            "there is nothing new"
        );
    }

    #[test]
    fn a_run_that_is_silent_is_told_to_live() {
        let begin = Instant::now();
        let mut news = News::new(begin);
        news.progress(begin);
        assert_eq!(news.progress(begin + LONGEST_SILENCE - PACE), None);
        assert_eq!(
            news.progress(begin + LONGEST_SILENCE),
            Some((2, "the agent is at work".to_owned()))
        );
    }

    #[test]
    fn calls_and_results_are_activities_and_never_long() {
        let mut news = News::new(Instant::now());
        let called = news.take(&call("ls")).remove(0);
        assert_eq!(
            (called.is_problem, &called.data["tool"]),
            (false, &json!("ls"))
        );
        assert_eq!(
            called.data["arguments"].as_str().unwrap().chars().count(),
            SHOWN + 1
        );
        let failed = news.take(&event(json!({ "type": "tool", "name": "ls", "content": "no such file", "status": "error" }))).remove(0);
        assert_eq!(
            (failed.is_problem, &failed.data["result"]),
            (true, &json!("no such file"))
        );
        assert!(
            news.take(&event(
                json!({ "type": "ai", "id": "a", "content": "words" })
            ))
            .is_empty()
        );
        assert!(
            news.take(&StreamEvent {
                kind: EventKind::Custom,
                data: json!({ "type": "tool" })
            })
            .is_empty()
        );
    }
}
