//! `/runs/crons`: run requests that are repeated on a schedule.

mod create;
mod patch;
mod read;
mod search;

pub(crate) use create::{create, create_on_thread};
pub(crate) use patch::patch;
pub(crate) use read::{delete, get};
pub(crate) use search::{count, search};

use chrono::{DateTime, NaiveDateTime, Utc};
use deerflow_domain::crons::{Schedule, ScheduleError};
use harness::json_size::size_beyond;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::error::ApiError;
use crate::extract::{Ids, Issues};

/// Metadata keys that only the server sets.
const RESERVED: [&str; 4] = ["thread_id", "assistant_id", "run_id", "cron_id"];

/// Maximum number of crons of one user, each of which may be due every minute.
const MAX_CRONS: u64 = 1_000;
/// Maximum size of a cron's request, in bytes of JSON: every poll for due crons reads it.
const MAX_REQUEST_BYTES: usize = 256 << 10;

/// Rejects a request that is too large to store.
fn require_size(request: &Map<String, Value>) -> Result<(), ApiError> {
    if let Some(length) = size_beyond(request, MAX_REQUEST_BYTES) {
        return Err(ApiError::Unprocessable(format!(
            "a cron's request may have at most {MAX_REQUEST_BYTES} bytes, this one has {length}"
        )));
    }
    Ok(())
}

/// The cron does not exist or belongs to another user.
fn not_found() -> ApiError {
    ApiError::NotFound("Not Found".to_owned())
}

/// Returns the id of the cron in the path.
fn cron_id(ids: &Ids) -> Result<Uuid, ApiError> {
    Uuid::parse_str(ids.text("cron_id"))
        .map_err(|_| ApiError::Unprocessable("Invalid cron ID: must be a UUID".to_owned()))
}

/// Reads a time with an offset, or in UTC.
fn read_moment(text: Option<String>, key: &str, issues: &mut Issues) -> Option<DateTime<Utc>> {
    let text = text?;
    let naive = |text: &str| {
        text.parse::<NaiveDateTime>()
            .ok()
            .map(|moment| moment.and_utc())
    };
    let moment = DateTime::parse_from_rfc3339(&text)
        .ok()
        .map(|moment| moment.to_utc())
        .or_else(|| naive(&text));
    // Stores represent times as microseconds since 1970 in 64 bits.
    let moment = moment.filter(|moment| (0..=9_999).contains(&chrono::Datelike::year(moment)));
    moment.or_else(|| {
        issues.refuse(
            "datetime_type",
            key,
            "Input should be an ISO 8601 date-time",
            &text.into(),
        )
    })
}

/// Returns metadata without the keys that only the server sets.
fn client_metadata(metadata: Option<Map<String, Value>>) -> Map<String, Value> {
    metadata
        .unwrap_or_default()
        .into_iter()
        .filter(|(key, _)| !RESERVED.contains(&key.as_str()))
        .collect()
}

/// Returns the stored form of a request: it names the assistant by id, and adds the cron's id to
/// the run's configuration.
fn payload_of(mut body: Map<String, Value>, assistant_id: &str, cron: Uuid) -> Map<String, Value> {
    body.insert("assistant_id".to_owned(), assistant_id.into());
    let config = body
        .entry("config")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(config) = config
        && let Value::Object(configurable) = config
            .entry("configurable")
            .or_insert_with(|| Value::Object(Map::new()))
    {
        configurable.insert("cron_id".to_owned(), cron.to_string().into());
    }
    body
}

/// Returns the request without the cron's id: options may be in `context`, and then not in
/// `configurable` as well.
pub(crate) fn request_of(mut payload: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Object(config)) = payload.get_mut("config") {
        if let Some(Value::Object(configurable)) = config.get_mut("configurable") {
            configurable.shift_remove("cron_id");
            if configurable.is_empty() {
                config.shift_remove("configurable");
            }
        }
        if config.is_empty() {
            payload.shift_remove("config");
        }
    }
    payload
}

fn schedule_of(fields: &str, timezone: Option<&str>) -> Result<Schedule, ApiError> {
    Schedule::parse(fields, timezone)
        .map_err(|error: ScheduleError| ApiError::Unprocessable(error.to_string()))
}
