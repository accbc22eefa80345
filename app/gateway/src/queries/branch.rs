//! Branches: the end of a turn in a state, and the journal of the new thread. Pure.

use std::collections::{HashMap, HashSet};

use deerflow_domain::branches::copied_run;
use harness::ids::{RunId, ThreadId};
use harness::messages::Message;
use harness::runtime::runs::store::{NewRunEvent, RunEvent};
use serde_json::Value;

use super::history::{Hidden, is_conversation, message_of};
use super::regenerate::is_question;

/// Position of a message's turn in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnPosition {
    /// The state does not contain the message.
    Absent,
    /// The turn is the last one.
    Last,
    /// Later turns follow.
    Followed,
}

/// Returns the position of the turn of the message `id`.
pub fn turn_position(messages: &[Message], id: &str) -> TurnPosition {
    let found = messages
        .iter()
        .rposition(|message| message.id.as_deref() == Some(id));
    match found {
        None => TurnPosition::Absent,
        Some(at) if messages[at + 1..].iter().any(is_question) => TurnPosition::Followed,
        Some(_) => TurnPosition::Last,
    }
}

/// Visible rows of the original that a branch repeats.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Repeated {
    /// Rows of the branch, in order.
    pub rows: Vec<NewRunEvent>,
    /// `true` if the original has later visible questions.
    pub is_followed: bool,
}

/// Owner and name of the journal of a branch.
#[derive(Debug, Clone, Copy)]
pub struct Seed<'a> {
    /// Original thread.
    pub original: &'a ThreadId,
    /// New thread.
    pub branch: &'a ThreadId,
    /// User of both.
    pub user: Option<&'a str>,
}

/// Returns the rows of the original up to the last message of the branch's state, except hidden
/// ones, with the `details` of their runs: rows of subagents and of changed files. The rows of each
/// run get the id of a run that exists only in the journal, so that a regeneration in the branch
/// replaces one turn.
pub fn repeated(
    journal: &[RunEvent],
    details: &[RunEvent],
    state: &[Message],
    hidden: &Hidden,
    seed: Seed<'_>,
) -> Repeated {
    let of_state: HashSet<&str> = state
        .iter()
        .filter_map(|message| message.id.as_deref())
        .collect();
    let visible: Vec<_> = journal
        .iter()
        .filter(|row| is_conversation(row))
        .filter_map(|row| {
            let message = message_of(seed.original, row)?;
            let id = message.get("id")?.as_str()?.to_owned();
            (!hidden.hides(row, &id)).then_some((row, message, id))
        })
        .collect();
    let end = visible
        .iter()
        .rposition(|(_, _, id)| of_state.contains(id.as_str()))
        .map_or(0, |last| last + 1);
    let is_followed = visible[end..]
        .iter()
        .any(|(_, message, _)| message.get("type").is_some_and(|kind| kind == "human"));
    let mut runs: HashMap<&RunId, RunId> = HashMap::new();
    let mut rows = Vec::with_capacity(end);
    for (row, message, _) in &visible[..end] {
        let number = runs.len();
        if !runs.contains_key(&row.event.run_id) {
            runs.extend(copied_run(seed.branch, number).map(|copy| (&row.event.run_id, copy)));
        }
        let Some(run) = runs.get(&row.event.run_id) else {
            continue;
        };
        rows.push((row.seq, seed.row(row, run, message.clone().into())));
    }
    for row in details {
        if let Some(run) = runs.get(&row.event.run_id) {
            rows.push((row.seq, seed.row(row, run, row.event.content.to_value())));
        }
    }
    rows.sort_by_key(|(seq, _)| *seq);
    Repeated {
        rows: rows.into_iter().map(|(_, row)| row).collect(),
        is_followed,
    }
}

impl Seed<'_> {
    /// Returns a row of the original as a row of the branch.
    fn row(&self, row: &RunEvent, run: &RunId, content: Value) -> NewRunEvent {
        let mut event = NewRunEvent {
            thread_id: self.branch.clone(),
            run_id: run.clone(),
            user_id: self.user.map(str::to_owned),
            content: content.into(),
            ..row.event.clone()
        };
        let original = self.original.as_str().into();
        let own = [
            ("branch_seed", Value::Bool(true)),
            ("branch_parent_thread_id", original),
        ];
        let own = own.map(|(key, value)| (key.to_owned(), value));
        event.metadata.extend(own);
        event
    }
}

#[cfg(test)]
#[path = "branch_tests.rs"]
mod tests;
