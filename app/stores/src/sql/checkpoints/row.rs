//! Conversion between a checkpoint and its row.

use deerflow_core::ids::{CheckpointId, RunId, ThreadId};
use deerflow_runtime::checkpoint::{
    CheckpointError, CheckpointMeta, CheckpointSource, CheckpointWrite, LogRange,
};
use deerflow_runtime::runs::store::StoreError;
use indexmap::IndexMap;
use serde_json::Value;

use crate::db::entity::{checkpoint, checkpoint_message, micros, moment};
use crate::db::json::{from_json, json_text};

pub(crate) fn new_row(write: &CheckpointWrite) -> checkpoint::Model {
    let meta = &write.meta;
    checkpoint::Model {
        thread_id: meta.thread_id.to_string(),
        checkpoint_id: meta.checkpoint_id.to_string(),
        parent_id: meta.parent_id.as_ref().map(ToString::to_string),
        run_id: meta.run_id.as_ref().map(ToString::to_string),
        source: source_word(meta.source).to_owned(),
        step: meta.step,
        layout_json: json_text(&write.layout),
        channels_json: json_text(&write.stored_channels()),
        next_json: json_text(&meta.next),
        machine_json: meta.machine.as_ref().map(json_text),
        metadata_json: json_text(&meta.metadata),
        created_at: micros(meta.created_at),
    }
}

pub(super) fn message_rows(
    write: &CheckpointWrite,
) -> impl Iterator<Item = checkpoint_message::Model> + '_ {
    write
        .new_messages
        .iter()
        .map(|(place, message)| checkpoint_message::Model {
            thread_id: write.meta.thread_id.to_string(),
            place: signed(*place),
            message_json: message.json().get().to_owned(),
        })
}

/// Converts a position of the message log to its stored form.
pub(crate) fn signed(position: u64) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

/// Reads the metadata of a row.
pub(super) fn meta(row: &checkpoint::Model) -> Result<CheckpointMeta, CheckpointError> {
    let read = || -> Result<CheckpointMeta, String> {
        let source =
            source_of(&row.source).ok_or_else(|| format!("unknown source {:?}", row.source))?;
        Ok(CheckpointMeta {
            checkpoint_id: CheckpointId::parse(row.checkpoint_id.as_str())
                .map_err(|error| error.to_string())?,
            thread_id: ThreadId::parse(row.thread_id.as_str())
                .map_err(|error| error.to_string())?,
            parent_id: row
                .parent_id
                .as_deref()
                .map(CheckpointId::parse)
                .transpose()
                .map_err(|error| error.to_string())?,
            run_id: row
                .run_id
                .as_deref()
                .map(RunId::parse)
                .transpose()
                .map_err(|error| error.to_string())?,
            source,
            step: row.step,
            next: from_json(&row.next_json)?,
            machine: row.machine_json.as_deref().map(from_json).transpose()?,
            metadata: from_json(&row.metadata_json)?,
            created_at: moment(row.created_at),
        })
    };
    read().map_err(|reason| damaged(row, reason))
}

pub(super) fn layout(row: &checkpoint::Model) -> Result<Vec<LogRange>, CheckpointError> {
    from_json(&row.layout_json).map_err(|reason| damaged(row, reason))
}

pub(super) fn channels(
    row: &checkpoint::Model,
) -> Result<IndexMap<String, Value>, CheckpointError> {
    from_json(&row.channels_json).map_err(|reason| damaged(row, reason))
}

pub(super) fn damaged(row: &checkpoint::Model, reason: String) -> CheckpointError {
    match ThreadId::parse(row.thread_id.as_str()) {
        Ok(thread_id) => CheckpointError::Damaged {
            thread_id,
            id: row.checkpoint_id.clone(),
            reason,
        },
        Err(error) => StoreError::Failed(error.to_string()).into(),
    }
}

fn source_word(source: CheckpointSource) -> &'static str {
    match source {
        CheckpointSource::Input => "input",
        CheckpointSource::Loop => "loop",
        CheckpointSource::Update => "update",
        CheckpointSource::Fork => "fork",
    }
}

fn source_of(word: &str) -> Option<CheckpointSource> {
    [
        CheckpointSource::Input,
        CheckpointSource::Loop,
        CheckpointSource::Update,
        CheckpointSource::Fork,
    ]
    .into_iter()
    .find(|source| source_word(*source) == word)
}
