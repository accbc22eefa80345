//! Data of a case: answers full of calls, the user's actions between them, and the permitted
//! effects.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Required decision of the policy on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expectation {
    /// The guardrails must deny it.
    Denied,
    /// The user must be prompted.
    Asked,
    /// The policy permits it, or the call never reaches the policy; other checks assert that it
    /// does no harm.
    Open,
}

/// Call as the model writes it.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub(super) id: String,
    pub(super) name: String,
    /// The arguments, which may not be JSON.
    pub(super) args: String,
    pub(super) expectation: Expectation,
}

impl Attempt {
    pub(super) fn new(expectation: Expectation, name: impl Into<String>, args: &Value) -> Self {
        Self::raw(expectation, name, args.to_string())
    }

    pub(super) fn raw(
        expectation: Expectation,
        name: impl Into<String>,
        args: impl Into<String>,
    ) -> Self {
        Self {
            id: String::new(),
            name: name.into(),
            args: args.into(),
            expectation,
        }
    }

    /// Returns the arguments if they can be parsed. A lone surrogate is read as U+FFFD.
    pub(super) fn readable(&self) -> Option<Map<String, Value>> {
        serde_json::from_str(&self.args.replace("\\ud800", "\u{fffd}")).ok()
    }
}

/// Action of the user or of a program on the user's behalf.
#[derive(Debug, Clone)]
pub(super) enum UserAction {
    /// Sends a message, which starts a run.
    Say,
    /// Answers the only open approval request.
    Answer(Value),
    /// Answers the open approval requests by the calls' argument `what`.
    AnswerEach(BTreeMap<String, Value>),
    /// Resumes the run without an answer.
    GoOn,
}

/// One case.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) user: &'static str,
    /// Answers of the lead agent, each a batch of calls; after the last batch it answers with one
    /// word.
    pub(super) lead: Vec<Vec<Attempt>>,
    /// Answers of subagents; a subagent's index is in its task.
    pub(super) subagents: Vec<Vec<Vec<Attempt>>>,
    pub(super) turns: Vec<UserAction>,
    /// Messages that the user approved, each once.
    pub(super) approved: Vec<String>,
    /// Notes that must exist: permitted work must succeed.
    pub(super) notes: Vec<String>,
    /// Additional options of the runs.
    pub(super) options: Map<String, Value>,
}

impl Case {
    pub(super) fn new(lead: Vec<Vec<Attempt>>) -> Self {
        Self {
            user: "ann",
            lead,
            subagents: Vec::new(),
            turns: vec![UserAction::Say],
            approved: Vec::new(),
            notes: Vec::new(),
            options: Map::new(),
        }
    }

    /// Gives every call without an id a unique one.
    pub(super) fn numbered(mut self) -> Self {
        let all = self
            .lead
            .iter_mut()
            .chain(self.subagents.iter_mut().flatten())
            .flatten();
        for (at, attempt) in all.enumerate().filter(|(_, attempt)| attempt.id.is_empty()) {
            attempt.id = format!("c{at}.");
        }
        self
    }
}
