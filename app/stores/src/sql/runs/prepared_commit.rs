//! Commit of a run's progress or end with prepared statements of SQLite.
//!
//! The guard is read before the first write, so that an unsuited commit changes nothing. Refused
//! and repeated commits, released runs, webhooks, temporary threads and discarded checkpoints are
//! left to [`super::commit`].

use std::sync::LazyLock;

use deerflow_runtime::runs::RunStatus;
use deerflow_runtime::runs::store::{CallEntry, RunCommit, RunEnd};
use rusqlite::{Connection, OptionalExtension, params};
use sea_orm::DbBackend;

use super::calls;
use super::commit_guard::{
    CommitCheck, END_THREAD, END_THREAD_WITH_ITS_TITLE, RunState, is_usual, number, permits,
};
use super::commit_outcome::{CommitRefusal, ThreadOutcome};
use crate::db::clock::now_of;
use crate::db::entity::{micros, plain, short_title};
use crate::db::json::json_text;
use crate::db::tx::Prepared;
use crate::sql::checkpoints::insert_checkpoints;
use crate::sql::memories::insert_update;
use crate::sql::requests::STORE_VALUES;
use crate::sql::run_events::insert_events;
use crate::sql::usage::insert_usage;

const GUARD: &str = "\
    SELECT runs.thread_id, runs.status, runs.attempt, runs.last_batch, threads_meta.temporary, threads_meta.display_name \
    FROM runs LEFT JOIN threads_meta ON threads_meta.thread_id = runs.thread_id WHERE run_id = ?1";

static UPDATE_RUN: LazyLock<String> = LazyLock::new(|| {
    let now = now_of(DbBackend::Sqlite);
    format!(
        "UPDATE runs SET updated_at = ?2, last_batch = ?3, status = ?4, completion_json = COALESCE(?5, completion_json), \
            started_at = CASE WHEN ?4 = 'running' THEN COALESCE(started_at, {now}) ELSE started_at END \
        WHERE run_id = ?1"
    )
});

const END_RUN: &str = "\
    UPDATE runs SET updated_at = ?2, last_batch = ?3, status = ?4, completion_json = ?5, error = ?6, error_name = ?7, \
        stop_reason = ?8, recipe_json = CASE WHEN ?9 THEN recipe_json END, owner = NULL \
    WHERE run_id = ?1";

/// Commits.
pub(super) fn commit(
    connection: &Connection,
    commit: &RunCommit,
) -> rusqlite::Result<Prepared<ThreadOutcome, CommitRefusal>> {
    if !is_usual(commit) {
        return Ok(Prepared::Unsuited);
    }
    let Some((state, thread)) = run_state(connection, commit)? else {
        return Ok(Prepared::Unsuited);
    };
    let CommitCheck::New(status) = CommitCheck::of(Some(&state), commit) else {
        return Ok(Prepared::Unsuited);
    };
    if !permits(status, commit) || (commit.end.is_some() && thread.is_temporary) {
        return Ok(Prepared::Unsuited);
    }
    let batch = if commit.batch > 0 {
        number(commit)
    } else {
        state.last_batch
    };
    match &commit.end {
        Some(end) => end_run(connection, commit, (end, &thread), batch)?,
        None => update_run(connection, commit, status, batch)?,
    }
    write_calls(connection, commit)?;
    if let Some(update) = &commit.memory_update {
        insert_update(connection, &commit.thread_id, update)?;
    }
    insert_events(connection, &commit.events)?;
    insert_checkpoints(connection, &commit.checkpoints)?;
    Ok(Prepared::Done(Ok(ThreadOutcome::Retained)))
}

/// Thread of a run.
struct ThreadRow {
    is_temporary: bool,
    title: Option<String>,
}

/// Returns the state of the run, and its thread.
fn run_state(
    connection: &Connection,
    commit: &RunCommit,
) -> rusqlite::Result<Option<(RunState, ThreadRow)>> {
    let mut statement = connection.prepare_cached(GUARD)?;
    let state = statement.query_row([commit.run_id.as_str()], |row| {
        let state = RunState {
            thread_id: row.get(0)?,
            status: row.get(1)?,
            attempt: row.get(2)?,
            last_batch: row.get(3)?,
        };
        let thread = ThreadRow {
            is_temporary: row.get::<_, Option<bool>>(4)?.unwrap_or_default(),
            title: row.get(5)?,
        };
        Ok((state, thread))
    });
    state.optional()
}

fn update_run(
    connection: &Connection,
    commit: &RunCommit,
    status: RunStatus,
    batch: i64,
) -> rusqlite::Result<()> {
    let so_far = commit.so_far.as_deref().map(json_text);
    let values = params![
        commit.run_id.as_str(),
        micros(commit.at),
        batch,
        commit.advance.unwrap_or(status).as_str(),
        so_far,
    ];
    connection.prepare_cached(&UPDATE_RUN)?.execute(values)?;
    Ok(())
}

/// Writes the end of the run and of its thread's activity, the usage, and the values of a request
/// that may be repeated.
fn end_run(
    connection: &Connection,
    commit: &RunCommit,
    (end, thread): (&RunEnd, &ThreadRow),
    batch: i64,
) -> rusqlite::Result<()> {
    let (run, at) = (commit.run_id.as_str(), micros(commit.at));
    let plain_text = |text: &Option<String>| text.as_deref().map(plain);
    let title = end.title.as_deref().map(short_title);
    let new_title = title.filter(|title| thread.title.as_ref() != Some(title));
    // The thread's row is written before the run's, as in admission.
    let (thread, status) = (commit.thread_id.as_str(), end.thread_status.as_str());
    if let Some(title) = new_title {
        let mut end_thread = connection.prepare_cached(END_THREAD)?;
        end_thread.execute(params![at, at, title, run, status, thread])?;
    } else {
        let mut end_thread = connection.prepare_cached(END_THREAD_WITH_ITS_TITLE)?;
        end_thread.execute(params![at, at, run, status, thread])?;
    }
    let values = params![
        run,
        at,
        batch,
        end.status.as_str(),
        json_text(&end.completion),
        plain_text(&end.error),
        plain_text(&end.error_name),
        plain_text(&end.stop_reason),
        end.is_poisoned(),
    ];
    connection.prepare_cached(END_RUN)?.execute(values)?;
    for (model, usage) in end.completion.by_model() {
        insert_usage(connection, run, model, &usage)?;
    }
    if let Some(values) = &end.kept_values {
        let values = String::from_utf8_lossy(values);
        connection
            .prepare_cached(STORE_VALUES)?
            .execute(params![values, run])?;
    }
    Ok(())
}

fn write_calls(connection: &Connection, commit: &RunCommit) -> rusqlite::Result<()> {
    let run = commit.run_id.as_str();
    if commit.end.as_ref().is_some_and(|end| end.forget_calls) {
        connection.prepare_cached(calls::FORGET)?.execute([run])?;
        return Ok(());
    }
    for CallEntry { key, progress } in &commit.calls {
        let values = params![run, key.as_str(), calls::result_text(progress)];
        connection.prepare_cached(calls::WRITE)?.execute(values)?;
    }
    Ok(())
}
