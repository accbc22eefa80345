//! `/runs/crons`: run requests that are repeated by the clock.

mod create;
mod patch;
mod read;
mod search;

pub(crate) use create::{create, create_on_thread};
pub(crate) use patch::patch;
pub(crate) use read::{delete, get};
pub(crate) use search::{count, search};

use chrono::{DateTime, NaiveDateTime, Utc};
use deerflow_domain::crons::{AfterRun, Schedule, ScheduleError};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::error::ApiError;
use crate::extract::{Fields, Ids};

/// The words for what becomes of a firing's thread.
const AFTER_RUN: &[(&str, AfterRun)] = &[("delete", AfterRun::Delete), ("keep", AfterRun::Keep)];

/// What only the server writes into metadata.
const RESERVED: [&str; 4] = ["thread_id", "assistant_id", "run_id", "cron_id"];

/// The most crons of one user, each of which may be due every minute.
const MOST_CRONS: u64 = 1_000;
/// The longest request that a cron repeats, in bytes of JSON: every look at what is due reads it.
const LONGEST_REQUEST: usize = 256 << 10;

/// Refuses a request that is too long to be kept.
fn require_short(request: &Map<String, Value>) -> Result<(), ApiError> {
    let length = serde_json::to_vec(request).map_or(usize::MAX, |json| json.len());
    if length > LONGEST_REQUEST {
        return Err(ApiError::Unprocessable(format!(
            "a cron's request should have at most {LONGEST_REQUEST} bytes, this one has {length}"
        )));
    }
    Ok(())
}

/// No such cron, or somebody else's.
fn not_found() -> ApiError {
    ApiError::NotFound("Not Found".to_owned())
}

/// The cron in the path.
fn cron_id(ids: &Ids) -> Result<Uuid, ApiError> {
    Uuid::parse_str(ids.text("cron_id"))
        .map_err(|_| ApiError::Unprocessable("Invalid cron ID: must be a UUID".to_owned()))
}

/// A moment with its offset, or in UTC.
fn read_moment(fields: &mut Fields, key: &str) -> Option<DateTime<Utc>> {
    let text = fields.text(key)?;
    let naive = |text: &str| {
        text.parse::<NaiveDateTime>()
            .ok()
            .map(|moment| moment.and_utc())
    };
    let moment = DateTime::parse_from_rfc3339(&text)
        .ok()
        .map(|moment| moment.to_utc())
        .or_else(|| naive(&text));
    // Stores keep microseconds since 1970 in 64 bits.
    let moment = moment.filter(|moment| (0..=9_999).contains(&chrono::Datelike::year(moment)));
    moment.or_else(|| {
        fields.refuse(
            "datetime_type",
            key,
            "Input should be an ISO 8601 date-time",
            &text.into(),
        )
    })
}

/// Metadata without what only the server writes.
fn read_metadata(fields: &mut Fields) -> Option<Map<String, Value>> {
    let metadata = fields.object("metadata")?;
    Some(
        metadata
            .into_iter()
            .filter(|(key, _)| !RESERVED.contains(&key.as_str()))
            .collect(),
    )
}

/// The request as it is kept: it names the assistant by its id, and tells runs which cron they come from.
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

/// The same without what it tells of the cron: options may come in `context`, and then not in `configurable` as well.
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
