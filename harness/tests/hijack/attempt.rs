//! What a case consists of: answers full of calls, what the person says in between, and what may come of it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// What the policy says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It must be refused by the guardrails.
    Denied,
    /// A person must be asked.
    Asked,
    /// The policy lets it pass, or it never gets that far; that it does no harm is for others to see to.
    Open,
}

/// A call as the model writes it.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub(super) id: String,
    pub(super) name: String,
    /// The arguments, which may be no JSON.
    pub(super) args: String,
    pub(super) fate: Fate,
}

impl Attempt {
    pub(super) fn new(fate: Fate, name: impl Into<String>, args: &Value) -> Self {
        Self::raw(fate, name, args.to_string())
    }

    pub(super) fn raw(fate: Fate, name: impl Into<String>, args: impl Into<String>) -> Self {
        Self {
            id: String::new(),
            name: name.into(),
            args: args.into(),
            fate,
        }
    }

    /// The arguments, if they can be read. Half a character is read as U+FFFD.
    pub(super) fn readable(&self) -> Option<Map<String, Value>> {
        serde_json::from_str(&self.args.replace("\\ud800", "\u{fffd}")).ok()
    }
}

/// What the person, or the program for them, does.
#[derive(Debug, Clone)]
pub(super) enum Turn {
    /// Says something, which starts a run.
    Say,
    /// Answers the one question that is open.
    Answer(Value),
    /// Answers the open questions about calls with these arguments under `what`.
    AnswerEach(BTreeMap<String, Value>),
    /// Has the run go on without an answer.
    GoOn,
}

/// One case.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) user: &'static str,
    /// The lead agent's answers, each a batch of calls; behind the last it says a word.
    pub(super) lead: Vec<Vec<Attempt>>,
    /// Those of the subagents that are told their number.
    pub(super) subagents: Vec<Vec<Vec<Attempt>>>,
    pub(super) turns: Vec<Turn>,
    /// Messages that the person allowed to be sent, each once.
    pub(super) approved: Vec<String>,
    /// Notes that must have been taken: work that is allowed is not to suffer.
    pub(super) notes: Vec<String>,
    /// Further options of the runs.
    pub(super) options: Map<String, Value>,
}

impl Case {
    pub(super) fn new(lead: Vec<Vec<Attempt>>) -> Self {
        Self {
            user: "ann",
            lead,
            subagents: Vec::new(),
            turns: vec![Turn::Say],
            approved: Vec::new(),
            notes: Vec::new(),
            options: Map::new(),
        }
    }

    /// Gives every call that has none an id of its own.
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
