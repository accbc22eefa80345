//! Admission of a run to a free thread with prepared statements of SQLite.
//!
//! Each function checks before it writes, so that a refusal changes nothing. Admissions with an
//! idempotency key or a delay, those to busy threads, and those of users who have as many active
//! runs as permitted, are left to [`super::create`].

use deerflow_core::quota::Quota;
use deerflow_runtime::runs::store::{AdmitError, Admitted, NewRun};
use deerflow_runtime::runs::{IfNotExists, RunStatus};
use rusqlite::{Connection, OptionalExtension, params};

use super::large_texts;
use super::row::{admitted, head, named_assistant};
use super::serialized_run::SerializedRun;
use super::user_runs::COUNT_ACTIVE;
use crate::db::entity::{micros, plain, run, thread};
use crate::db::quotas::QuotaCheck;
use crate::db::tx::Prepared;
use crate::sql::checkpoints::head_columns;

const THREAD_OWNER: &str =
    "SELECT user_id, assistant_id IS NOT NULL FROM threads_meta WHERE thread_id = ?1";
const DELETED_THREAD_OWNER: &str =
    "SELECT user_id, FALSE FROM deleted_threads WHERE thread_id = ?1";
const INSERT_RUN: &str = "\
    INSERT INTO runs (run_id, thread_id, assistant_id, user_id, status, attempt, model_name, multitask_strategy, metadata_json, \
        kwargs_json, last_batch, recipe_json, webhook, owner, losses, place, due_at, created_at, updated_at) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19) \
    ON CONFLICT (run_id) DO NOTHING";

const INSERT_THREAD: &str = "\
    INSERT INTO threads_meta (thread_id, assistant_id, user_id, run_assistant_id, status, metadata_json, pinned, temporary, \
        created_at, updated_at, state_updated_at, ttl_micros, keep_latest) \
    VALUES (?1, ?2, ?3, ?4, 'busy', '{}', FALSE, ?5, ?6, ?6, ?6, ?7, ?8)";

const SET_BUSY: &str =
    "UPDATE threads_meta SET status = 'busy', updated_at = ?2 WHERE thread_id = ?1";

/// Does the same as [`SET_BUSY`] for a thread without an assistant, and gives it that of the run. SQLite
/// writes the indexes of all columns that a statement sets.
const SET_BUSY_WITH_ASSISTANT: &str = "\
    UPDATE threads_meta SET status = 'busy', updated_at = ?2, \
        run_assistant_id = ?3, assistant_id = ?4 WHERE thread_id = ?1";

const PIN_CONTENT: &str = "\
    INSERT INTO flow_pins (thread_id, content_hash) VALUES (?1, ?2) ON CONFLICT DO NOTHING";

/// State of the thread of a new run.
enum ThreadState {
    /// It exists, belongs to the user and has no unfinished run.
    Free { has_assistant: bool },
    /// It does not exist and may be created.
    Absent,
    /// It is missing, or belongs to another user.
    NotFound,
    /// It has unfinished runs.
    Busy,
}

/// Admits a run.
pub(super) fn admit(
    connection: &Connection,
    (run, check): &(SerializedRun, QuotaCheck),
) -> rusqlite::Result<Prepared<Admitted, AdmitError>> {
    let new = &run.new;
    if new.request().idempotency_key().is_some() || new.created_at > new.at || check.size().is_err()
    {
        return Ok(Prepared::Unsuited);
    }
    let state = thread_state(connection, new)?;
    match state {
        ThreadState::Busy => return Ok(Prepared::Unsuited),
        ThreadState::NotFound => {
            let not_found = AdmitError::ThreadNotFound(new.thread_id.clone());
            return Ok(Prepared::Done(Err(not_found)));
        }
        ThreadState::Free { .. } | ThreadState::Absent => {}
    }
    if user_is_at_limit(connection, new)? {
        return Ok(Prepared::Unsuited);
    }
    if matches!(state, ThreadState::Absent)
        && let Err(exceeded) = check.before(connection, Quota::Threads)?
    {
        return Ok(Prepared::Done(Err(exceeded.into())));
    }
    if !insert_run(connection, run)? {
        // The run's id is in use.
        return Ok(Prepared::Unsuited);
    }
    match state {
        ThreadState::Free {
            has_assistant: true,
        } => {
            let values = params![new.thread_id.as_str(), micros(new.at)];
            connection.prepare_cached(SET_BUSY)?.execute(values)?;
        }
        ThreadState::Absent => insert_thread(connection, new)?,
        _ => set_busy_with_assistant(connection, new)?,
    }
    if let Some(pin) = &new.recipe.pin {
        let values = params![new.thread_id.as_str(), plain(&pin.content_hash)];
        connection.prepare_cached(PIN_CONTENT)?.execute(values)?;
    }
    let (checkpoint, log_tail) = head_columns(connection, &new.thread_id)?;
    Ok(Prepared::Done(Ok(Admitted {
        run: admitted(new, RunStatus::Starting),
        displaced: Vec::new(),
        head: head(checkpoint, log_tail),
    })))
}

fn thread_state(connection: &Connection, new: &NewRun) -> rusqlite::Result<ThreadState> {
    let thread = [new.thread_id.as_str()];
    let user = |sql| {
        let mut statement = connection.prepare_cached(sql)?;
        let row = statement.query_row(thread, |row| {
            Ok((row.get::<_, Option<String>>(0)?, row.get::<_, bool>(1)?))
        });
        row.optional()
    };
    let is_foreign = |user: &Option<String>| *user != new.user_id;
    if let Some((user, has_assistant)) = user(THREAD_OWNER)? {
        if is_foreign(&user) {
            return Ok(ThreadState::NotFound);
        }
        let is_busy = connection.prepare_cached(run::HAS_ACTIVE)?.exists(thread)?;
        return Ok(if is_busy {
            ThreadState::Busy
        } else {
            ThreadState::Free { has_assistant }
        });
    }
    let may_create = new.request().scope.if_not_exists() == IfNotExists::Create
        && !user(DELETED_THREAD_OWNER)?.is_some_and(|(user, _)| is_foreign(&user));
    Ok(if may_create {
        ThreadState::Absent
    } else {
        ThreadState::NotFound
    })
}

fn user_is_at_limit(connection: &Connection, new: &NewRun) -> rusqlite::Result<bool> {
    let (Some(max), Some(user)) = (new.per_user.max_active, &new.user_id) else {
        return Ok(false);
    };
    let mut statement = connection.prepare_cached(COUNT_ACTIVE)?;
    let active: i64 = statement.query_row([user], |row| row.get(0))?;
    Ok(active.unsigned_abs() >= max)
}

/// Inserts the run. Returns `false` if its id is in use.
fn insert_run(connection: &Connection, run: &SerializedRun) -> rusqlite::Result<bool> {
    let row = run.row_without_texts(RunStatus::Starting);
    let mut statement = connection.prepare_cached(INSERT_RUN)?;
    let inserted = statement.execute(params![
        row.run_id,
        row.thread_id,
        row.assistant_id,
        row.user_id,
        row.status,
        row.attempt,
        row.model_name,
        row.multitask_strategy,
        row.metadata_json,
        run.kwargs_json(),
        row.last_batch,
        run.recipe_json(),
        row.webhook,
        row.owner,
        row.losses,
        row.place,
        row.due_at,
        row.created_at,
        row.updated_at,
    ])?;
    if inserted == 0 {
        return Ok(false);
    }
    for (column, text) in run.texts_apart() {
        let mut insert = connection.prepare_cached(large_texts::INSERT)?;
        for (number, part) in large_texts::parts_of(text) {
            insert.execute(params![run.new.run_id.as_str(), column, number, part])?;
        }
    }
    Ok(true)
}

fn insert_thread(connection: &Connection, new: &NewRun) -> rusqlite::Result<()> {
    let request = new.request();
    let ttl = request.created_thread_ttl();
    let values = params![
        new.thread_id.as_str(),
        plain(&request.assistant),
        new.user_id,
        named_assistant(new),
        request.scope.is_temporary(),
        micros(new.at),
        ttl.and_then(|ttl| ttl.after.num_microseconds()),
        thread::keeps_latest(ttl),
    ];
    connection.prepare_cached(INSERT_THREAD)?.execute(values)?;
    Ok(())
}

fn set_busy_with_assistant(connection: &Connection, new: &NewRun) -> rusqlite::Result<()> {
    let values = params![
        new.thread_id.as_str(),
        micros(new.at),
        named_assistant(new),
        plain(&new.request().assistant),
    ];
    connection
        .prepare_cached(SET_BUSY_WITH_ASSISTANT)?
        .execute(values)?;
    Ok(())
}
