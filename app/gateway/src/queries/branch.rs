//! Branches: the end of a turn in a state, and the journal of the new thread. Pure.

use std::collections::{HashMap, HashSet};

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
/// ones. The rows of each run get the id of a run that exists only in the journal, so that a
/// regeneration in the branch replaces one turn.
pub fn repeated(
    journal: &[RunEvent],
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
    let mut runs: HashMap<&RunId, Option<RunId>> = HashMap::new();
    let mut rows = Vec::with_capacity(end);
    for (row, message, _) in &visible[..end] {
        let number = runs.len();
        let run = runs
            .entry(&row.event.run_id)
            .or_insert_with(|| RunId::parse(format!("branch-seed-{}-{number}", seed.branch)).ok());
        let Some(run) = run else { continue };
        let mut event = NewRunEvent {
            thread_id: seed.branch.clone(),
            run_id: run.clone(),
            user_id: seed.user.map(str::to_owned),
            content: Value::Object(message.clone()),
            ..row.event.clone()
        };
        event.metadata.insert("branch_seed".to_owned(), true.into());
        let original = seed.original.as_str().into();
        event
            .metadata
            .insert("branch_parent_thread_id".to_owned(), original);
        rows.push(event);
    }
    Repeated { rows, is_followed }
}

#[cfg(test)]
#[path = "branch_tests.rs"]
mod tests;
