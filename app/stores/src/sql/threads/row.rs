//! Conversion between a thread and its row.

use chrono::TimeDelta;
use deerflow_core::ids::ThreadId;
use deerflow_domain::threads::{NewThread, ThreadRecord};
use deerflow_runtime::runs::{Expiry, ThreadStatus, ThreadTtl};
use sea_orm::DbErr;
use serde_json::{Map, Value};

use crate::db::entity::{micros, moment, plain, thread};
use crate::db::json::{from_json, json_text};

pub(super) fn new_row(new: &NewThread) -> thread::Model {
    let at = micros(new.at);
    thread::Model {
        thread_id: new.thread_id.to_string(),
        assistant_id: new.assistant.as_deref().map(plain),
        run_assistant_id: new.assistant_id.as_deref().map(plain),
        user_id: new.user_id.clone(),
        display_name: None,
        status: ThreadStatus::Idle.as_str().to_owned(),
        metadata_json: json_text(&new.metadata),
        pinned: is_pinned(&new.metadata),
        temporary: false,
        created_at: at,
        updated_at: at,
        state_updated_at: at,
        ttl_micros: new.ttl.and_then(|ttl| ttl.after.num_microseconds()),
        keep_latest: thread::keeps_latest(new.ttl),
        forgot_at: None,
    }
}

/// Returns `true` if the thread is pinned in the sidebar.
pub(super) fn is_pinned(metadata: &Map<String, Value>) -> bool {
    metadata.get("deerflow_pinned") == Some(&Value::Bool(true))
}

/// Reads a row. The error of an unreadable one names the thread.
pub(super) fn record(row: thread::Model) -> Result<ThreadRecord, DbErr> {
    let then = if row.keep_latest {
        Expiry::KeepLatest
    } else {
        Expiry::Delete
    };
    let damaged =
        |reason: String| DbErr::Type(format!("thread {} is damaged: {reason}", row.thread_id));
    Ok(ThreadRecord {
        thread_id: ThreadId::parse(row.thread_id.as_str())
            .map_err(|error| damaged(error.to_string()))?,
        status: ThreadStatus::parse(&row.status)
            .ok_or_else(|| damaged(format!("unknown status {:?}", row.status)))?,
        metadata: from_json(&row.metadata_json).map_err(damaged)?,
        user_id: row.user_id,
        assistant: row.assistant_id,
        assistant_id: row.run_assistant_id,
        title: row.display_name,
        created_at: moment(row.created_at),
        updated_at: moment(row.updated_at),
        state_updated_at: moment(row.state_updated_at.max(row.created_at)),
        ttl: row.ttl_micros.map(|micros| ThreadTtl {
            after: TimeDelta::microseconds(micros),
            then,
        }),
    })
}

/// Reads rows for a list, except unreadable ones, which are logged.
pub(super) fn records(rows: Vec<thread::Model>) -> Vec<ThreadRecord> {
    rows.into_iter()
        .filter_map(|row| {
            record(row)
                .inspect_err(
                    |error| tracing::error!(%error, "a thread is damaged, omitted from a list"),
                )
                .ok()
        })
        .collect()
}
