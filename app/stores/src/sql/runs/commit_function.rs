//! Commit of a run's progress or end by a function of Postgres.
//!
//! Refused and repeated commits, released runs, webhooks, temporary threads, and discarded or
//! amended checkpoints are left to [`super::commit`].

use std::collections::BTreeMap;

use deerflow_core::compute::heavy_poll;
use deerflow_runtime::checkpoint::{CheckpointWrite, LogRange};
use deerflow_runtime::runs::store::{NewRunEvent, RunCommit};
use futures_util::future::BoxFuture;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, Postgres};
use sqlx::{Arguments, Encode, PgPool, Type};

use super::calls::result_text;
use super::commit_guard::{is_usual, legal_before, number};
use super::commit_outcome::{CommitRefusal, ThreadOutcome};
use crate::db::entity::{checkpoint, micros, plain, short_title};
use crate::db::json::json_text;
use crate::db::tx::Prepared;
use crate::sql::checkpoints::{new_messages, new_row, positions_to_verify, signed};
use crate::sql::memories::{key, update_statement};
use crate::sql::usage::token_counts;

macro_rules! call_function {
    () => {
        "deerflow_commit_run($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, \
            $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, \
            $41, $42, $43, $44, $45, $46)"
    };
}

const COMMIT: &str = concat!("SELECT ", call_function!());

/// Registers the pending update of a memory as well, if the function commits.
const COMMIT_WITH_MEMORY_UPDATE: &str = concat!(
    "WITH committed AS (SELECT ",
    call_function!(),
    " AS is_committed), added AS (",
    update_statement!("SELECT $2, $47, $48, 1, 0, $49 FROM committed WHERE is_committed"),
    ") SELECT is_committed FROM committed"
);

/// Arguments of the function, as far as they are bound. Each `bind_*` function here binds the next
/// ones, in the order of the function's parameters.
struct Bound(Result<PgArguments, BoxDynError>);

impl Bound {
    /// Encodes the next argument.
    fn bind<'a, T>(self, value: T) -> Self
    where
        T: Encode<'a, Postgres> + Type<Postgres>,
    {
        Self(self.0.and_then(|mut arguments| {
            arguments.add(value)?;
            Ok(arguments)
        }))
    }
}

/// Commits.
pub(super) fn commit<'a>(
    pool: &'a PgPool,
    commit: &'a RunCommit,
) -> BoxFuture<'a, sqlx::Result<Prepared<ThreadOutcome, CommitRefusal>>> {
    Box::pin(async move {
        if !is_usual(commit) || !has_usual_checkpoints(commit) {
            return Ok(Prepared::Unsuited);
        }
        heavy_poll(new_messages(&commit.checkpoints)).await;
        let (mut sql, mut bound) = (COMMIT, arguments(commit));
        if let Some(update) = &commit.memory_update {
            sql = COMMIT_WITH_MEMORY_UPDATE;
            let (user, agent) = key(&update.scope);
            bound = bound.bind(user).bind(agent).bind(micros(update.due));
        }
        let arguments = bound.0.map_err(sqlx::Error::Encode)?;
        let is_committed: bool = sqlx::query_scalar_with(sql, arguments)
            .fetch_one(pool)
            .await?;
        Ok(if is_committed {
            Prepared::Done(Ok(ThreadOutcome::Retained))
        } else {
            Prepared::Unsuited
        })
    })
}

/// Returns `true` if all checkpoints are new ones of the run's thread.
fn has_usual_checkpoints(commit: &RunCommit) -> bool {
    let own = |write: &CheckpointWrite| !write.amends && write.meta.thread_id == commit.thread_id;
    commit.checkpoints.iter().all(own)
}

fn arguments(commit: &RunCommit) -> Bound {
    let end = commit.end.as_ref();
    let permitted: Vec<_> = legal_before(commit).map(|status| status.as_str()).collect();
    let status = end.map(|end| end.status).or(commit.advance);
    let completion = match end {
        Some(end) => Some(json_text(&end.completion)),
        None => commit.so_far.as_deref().map(json_text),
    };
    let bound = Bound(Ok(PgArguments::default()))
        .bind(commit.run_id.as_str())
        .bind(commit.thread_id.as_str())
        .bind(i64::from(commit.attempt))
        .bind(number(commit))
        .bind(micros(commit.at))
        .bind(permitted)
        .bind(status.map(|status| status.as_str()))
        .bind(completion);
    let bound = bind_end(bound, commit);
    let bound = bind_calls(bound, commit);
    let bound = bind_usage(bound, commit);
    let bound = bind_events(bound, &commit.events);
    bind_checkpoints(bound, &commit.checkpoints)
}

fn bind_end(bound: Bound, commit: &RunCommit) -> Bound {
    let end = commit.end.as_ref();
    let text = |text: Option<&String>| text.map(|text| plain(text));
    let values = end.and_then(|end| end.kept_values.as_ref());
    bound
        .bind(end.is_some())
        .bind(text(end.and_then(|end| end.error.as_ref())))
        .bind(text(end.and_then(|end| end.error_name.as_ref())))
        .bind(text(end.and_then(|end| end.stop_reason.as_ref())))
        .bind(end.is_some_and(|end| end.is_poisoned()))
        .bind(end.map(|end| end.thread_status.as_str()))
        .bind(end.and_then(|end| end.title.as_deref()).map(short_title))
        .bind(values.map(|values| String::from_utf8_lossy(values).into_owned()))
}

/// Binds the last entry of each call: one statement cannot write a row twice.
fn bind_calls(bound: Bound, commit: &RunCommit) -> Bound {
    let entries = commit.calls.iter();
    let last: BTreeMap<&str, Option<String>> = entries
        .map(|entry| (entry.key.as_str(), result_text(&entry.progress)))
        .collect();
    let (keys, results): (Vec<_>, Vec<_>) = last.into_iter().unzip();
    bound
        .bind(commit.end.as_ref().is_some_and(|end| end.forget_calls))
        .bind(keys)
        .bind(results)
}

fn bind_usage(bound: Bound, commit: &RunCommit) -> Bound {
    let completion = commit.end.as_ref().map(|end| &end.completion);
    let rows: Vec<_> = completion
        .into_iter()
        .flat_map(|completion| completion.by_model())
        .map(|(model, usage)| (plain(model), token_counts(&usage)))
        .collect();
    let models: Vec<_> = rows.iter().map(|(model, _)| model.as_str()).collect();
    let counts =
        |column: usize| -> Vec<i64> { rows.iter().map(|(_, counts)| counts[column]).collect() };
    bound
        .bind(models)
        .bind(counts(0))
        .bind(counts(1))
        .bind(counts(2))
        .bind(counts(3))
}

fn bind_events(bound: Bound, events: &[NewRunEvent]) -> Bound {
    let texts = |text: fn(&NewRunEvent) -> &str| -> Vec<&str> { events.iter().map(text).collect() };
    let users: Vec<_> = events
        .iter()
        .map(|event| event.user_id.as_deref())
        .collect();
    let contents: Vec<_> = events.iter().map(|event| event.content.json()).collect();
    let metadata: Vec<_> = events
        .iter()
        .map(|event| json_text(&event.metadata))
        .collect();
    let times: Vec<_> = events
        .iter()
        .map(|event| micros(event.created_at))
        .collect();
    bound
        .bind(texts(|event| event.run_id.as_str()))
        .bind(users)
        .bind(texts(|event| &event.event_type))
        .bind(texts(|event| &event.category))
        .bind(contents)
        .bind(metadata)
        .bind(times)
}

fn bind_checkpoints(bound: Bound, writes: &[CheckpointWrite]) -> Bound {
    let messages = || writes.iter().flat_map(|write| &write.new_messages);
    let places: Vec<_> = messages().map(|(place, _)| signed(*place)).collect();
    let texts: Vec<_> = messages()
        .map(|(_, message)| message.json().get())
        .collect();
    let rows: Vec<_> = writes.iter().map(new_row).collect();
    let (first, last) = match positions_to_verify(writes) {
        Some(LogRange(first, last)) => (Some(signed(first)), Some(signed(last))),
        None => (None, None),
    };
    let column =
        |text: fn(&checkpoint::Model) -> &str| -> Vec<&str> { rows.iter().map(text).collect() };
    let nullable = |text: fn(&checkpoint::Model) -> Option<&str>| -> Vec<Option<&str>> {
        rows.iter().map(text).collect()
    };
    let numbers =
        |number: fn(&checkpoint::Model) -> i64| -> Vec<i64> { rows.iter().map(number).collect() };
    bound
        .bind(places)
        .bind(texts)
        .bind(column(|row| &row.checkpoint_id))
        .bind(nullable(|row| row.parent_id.as_deref()))
        .bind(nullable(|row| row.run_id.as_deref()))
        .bind(column(|row| &row.source))
        .bind(numbers(|row| row.step))
        .bind(column(|row| &row.layout_json))
        .bind(column(|row| &row.channels_json))
        .bind(column(|row| &row.next_json))
        .bind(nullable(|row| row.machine_json.as_deref()))
        .bind(column(|row| &row.metadata_json))
        .bind(numbers(|row| row.created_at))
        .bind(first)
        .bind(last)
}
