//! Transcript of a thread: the checkpoint's messages, preceded by those that compaction removed
//! from it.

use std::collections::{HashMap, HashSet};

use harness::ids::{RunId, ThreadId};
use harness::messages::{Message, kwargs};
use harness::runtime::runs::store::RunEvent;
use harness::runtime::runs::{RunRecord, RunStatus};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::responses::is_rolled_back;

/// Type of the journal events that name deliberately removed messages: `{"ids": [..]}`.
pub const MESSAGE_REMOVED: &str = "message.removed";

/// Messages and runs that a transcript omits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hidden {
    /// Deliberately removed messages.
    pub messages: HashSet<String>,
    /// Runs that were rolled back or superseded.
    pub runs: HashSet<RunId>,
}

impl Hidden {
    /// `true` if the journal row is omitted.
    pub fn hides(&self, row: &RunEvent, id: &str) -> bool {
        self.runs.contains(&row.event.run_id) || self.messages.contains(id)
    }
}

/// Converts a journal row to a message with an id, and repairs what older versions wrote. `None` if
/// the row is not a message.
pub fn message_of(thread: &ThreadId, row: &RunEvent) -> Option<Map<String, Value>> {
    let mut message = row
        .event
        .content
        .as_object()
        .filter(|content| content.get("type").is_some_and(Value::is_string))?
        .clone();
    if !message.get("id").is_some_and(Value::is_string) {
        message.insert("id".to_owned(), fallback_id(thread, row.seq).into());
    }
    if message.get("type").is_some_and(|kind| kind == "tool") {
        let inner = message
            .get("content")
            .and_then(Value::as_str)
            .and_then(legacy_command_text);
        if let Some(inner) = inner {
            message.insert("content".to_owned(), inner.into());
        }
    }
    Some(message)
}

/// Returns a deterministic id for a message that was journaled without one.
fn fallback_id(thread: &ThreadId, seq: u64) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_URL, format!("{thread}:{seq}").as_bytes()).to_string()
}

/// Extracts a tool's text from the printed form of a state update, which old journals hold instead
/// of it.
fn legacy_command_text(text: &str) -> Option<String> {
    let update = text.strip_prefix("Command(update=")?;
    let (_, rest) = update.split_once("ToolMessage(content=")?;
    let quote = rest
        .chars()
        .next()
        .filter(|quote| matches!(quote, '\'' | '"'))?;
    let mut inner = String::new();
    let mut chars = rest.chars().skip(1);
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next()? {
                'n' => inner.push('\n'),
                't' => inner.push('\t'),
                'r' => inner.push('\r'),
                other => inner.push(other),
            },
            end if end == quote => return Some(inner),
            other => inner.push(other),
        }
    }
    None
}

/// `true` if a row belongs to the conversation, not to a subagent or a middleware.
pub fn is_conversation(row: &RunEvent) -> bool {
    let caller = row
        .event
        .metadata
        .get("caller")
        .and_then(Value::as_str)
        .unwrap_or_default();
    !caller.starts_with("middleware:") && !caller.starts_with("subagent:")
}

/// Joins the journal and a checkpoint. The checkpoint is authoritative for the messages it
/// contains; journal rows before the first of them precede it, unless they are hidden. `journal` is
/// ascending and may end with the first row that the checkpoint contains.
pub fn assemble(
    thread: &ThreadId,
    checkpoint: &[Message],
    journal: &[RunEvent],
    hidden: &Hidden,
) -> Vec<Value> {
    let checkpoint_ids: HashSet<&str> = checkpoint
        .iter()
        .filter_map(|message| message.id.as_deref())
        .collect();
    let mut seen: HashSet<String> = HashSet::new();
    let mut messages = Vec::new();
    for row in journal.iter().filter(|row| is_conversation(row)) {
        let Some(message) = message_of(thread, row) else {
            continue;
        };
        let id = message
            .get("id")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if checkpoint_ids.contains(id.as_str()) {
            break;
        }
        if !hidden.hides(row, &id) && seen.insert(id) {
            messages.push(Value::Object(message));
        }
    }
    messages.extend(
        checkpoint
            .iter()
            .map(|message| serde_json::to_value(message.json()).unwrap_or_default()),
    );
    messages
}

/// `true` if `row` is one of the messages in `ids`, so that [`assemble`] needs no later row.
pub fn reaches_checkpoint(thread: &ThreadId, row: &RunEvent, ids: &HashSet<&str>) -> bool {
    is_conversation(row)
        && message_of(thread, row)
            .and_then(|message| {
                message
                    .get("id")
                    .and_then(Value::as_str)
                    .map(|id| ids.contains(id))
            })
            .unwrap_or(false)
}

/// Returns the runs that a transcript omits. `runs` are newest first.
///
/// A regenerated answer hides its source run once the newest attempt succeeded. An edit hides its
/// source run while the newest attempt is active or succeeded; failed attempts hide themselves, so
/// that the original becomes visible again.
pub fn hidden_runs(runs: &[RunRecord]) -> HashSet<RunId> {
    let mut hidden: HashSet<RunId> = runs
        .iter()
        .filter(|run| is_rolled_back(run))
        .map(|run| run.run_id.clone())
        .collect();
    let mut seen_sources: HashSet<RunId> = HashSet::new();
    for run in runs {
        let source = run
            .metadata
            .get("regenerate_from_run_id")
            .and_then(Value::as_str)
            .and_then(|id| RunId::parse(id).ok());
        let Some(source) = source else { continue };
        let edit = run
            .metadata
            .get("replay_kind")
            .is_some_and(|kind| kind == "edit");
        let active = !run.status.is_terminal();
        if edit && !active && run.status != RunStatus::Success {
            hidden.insert(run.run_id.clone());
        }
        let newest = seen_sources.insert(source.clone());
        if newest && (run.status == RunStatus::Success || (edit && active)) {
            hidden.insert(source);
        }
    }
    hidden
}

/// Returns the run that each journaled human message began, by message id.
pub fn run_starts(thread: &ThreadId, rows: &[RunEvent]) -> HashMap<String, String> {
    let id = |row: &RunEvent| {
        message_of(thread, row)?
            .get("id")?
            .as_str()
            .map(str::to_owned)
    };
    rows.iter()
        .filter_map(|row| Some((id(row)?, row.event.run_id.to_string())))
        .collect()
}

/// Adds the run id to each message, and the run's duration in seconds to the last answer of each
/// run. A run begins with a message of `run_starts`, or with one that names its run.
pub fn annotate(
    messages: &mut [Value],
    run_starts: &HashMap<String, String>,
    durations: &HashMap<String, i64>,
) {
    let mut run: Option<String> = None;
    let mut last_answer: HashMap<String, usize> = HashMap::new();
    for (index, message) in messages.iter_mut().enumerate() {
        let Some(fields) = message.as_object_mut() else {
            continue;
        };
        let recorded = fields
            .get("additional_kwargs")
            .and_then(|extra| extra.get(kwargs::RUN_ID))
            .and_then(Value::as_str);
        let started = fields
            .get("id")
            .and_then(Value::as_str)
            .and_then(|id| run_starts.get(id))
            .map(String::as_str);
        if let Some(started) = started.or(recorded) {
            run = Some(started.to_owned());
        }
        let Some(run) = &run else { continue };
        if fields.get("type").is_some_and(|kind| kind == "ai") {
            last_answer.insert(run.clone(), index);
        }
        fields
            .entry("run_id")
            .or_insert_with(|| run.as_str().into());
    }
    for (run, index) in last_answer {
        if let (Some(seconds), Some(message)) = (durations.get(&run), messages.get_mut(index)) {
            add_turn_duration(message, *seconds);
        }
    }
}

/// Sets `additional_kwargs.turn_duration`.
pub fn add_turn_duration(message: &mut Value, seconds: i64) {
    let Some(fields) = message.as_object_mut() else {
        return;
    };
    let extra = fields
        .entry("additional_kwargs")
        .or_insert_with(|| Map::new().into());
    if let Some(extra) = extra.as_object_mut() {
        extra.insert("turn_duration".to_owned(), seconds.into());
    }
}

/// Returns the duration of each finished run, in whole seconds.
pub fn durations(runs: &[RunRecord]) -> HashMap<String, i64> {
    let finished = runs.iter().filter(|run| run.status.is_terminal());
    finished
        .map(|run| {
            (
                run.run_id.to_string(),
                (run.updated_at - run.created_at).num_seconds().max(0),
            )
        })
        .collect()
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
