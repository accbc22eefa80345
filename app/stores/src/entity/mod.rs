//! The tables as SeaORM entities. Moments are microseconds since 1970 in UTC; JSON is text that no query looks into, except a
//! thread's metadata.

pub(crate) mod api_key;
pub(crate) mod assistant;
pub(crate) mod assistant_version;
pub(crate) mod checkpoint;
pub(crate) mod checkpoint_message;
pub(crate) mod cron;
pub(crate) mod feedback;
pub(crate) mod memory;
pub(crate) mod memory_news;
pub(crate) mod request_key;
pub(crate) mod run;
pub(crate) mod run_event;
pub(crate) mod thread;
pub(crate) mod thread_fact;
pub(crate) mod webhook;

use chrono::{DateTime, Utc};

/// Free text as it is stored: Postgres takes no NUL character, so none is stored anywhere.
pub(crate) fn plain(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// A title as it is stored beside its thread, where it is shown in lists and found by an index: Postgres takes no more than 2,700
/// bytes into one.
pub(crate) fn short_title(title: &str) -> String {
    plain(title).chars().take(LONGEST_TITLE).collect()
}

/// In characters.
const LONGEST_TITLE: usize = 500;

/// A moment as it is stored.
pub(crate) fn micros(at: DateTime<Utc>) -> i64 {
    at.timestamp_micros()
}

/// A stored moment.
pub(crate) fn moment(micros: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(micros).unwrap_or_default()
}
