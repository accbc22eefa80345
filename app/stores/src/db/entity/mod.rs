//! The tables as SeaORM entities. Timestamps are microseconds since 1970 in UTC. JSON is text that
//! no query reads, except a thread's metadata.

pub(crate) mod account;
pub(crate) mod api_key;
pub(crate) mod assistant;
pub(crate) mod assistant_version;
pub(crate) mod audit;
pub(crate) mod channel_connection;
pub(crate) mod channel_conversation;
pub(crate) mod channel_inbox;
pub(crate) mod channel_link;
pub(crate) mod channel_outbox;
pub(crate) mod checkpoint;
pub(crate) mod checkpoint_message;
pub(crate) mod cron;
pub(crate) mod feedback;
pub(crate) mod flow;
pub(crate) mod flow_content;
pub(crate) mod flow_version;
pub(crate) mod memory;
pub(crate) mod memory_news;
pub(crate) mod request_key;
pub(crate) mod run;
pub(crate) mod run_event;
pub(crate) mod run_text_part;
pub(crate) mod scheduled_task;
pub(crate) mod scheduled_task_run;
pub(crate) mod session;
pub(crate) mod thread;
pub(crate) mod thread_fact;
pub(crate) mod thread_log_run;
pub(crate) mod webhook;

use chrono::{DateTime, Utc};

/// Replaces NUL characters, which Postgres does not accept in text.
pub(crate) fn plain(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Shortens a title for the thread's row, where it is listed and indexed: an index entry of
/// Postgres has at most 2,700 bytes.
pub(crate) fn short_title(title: &str) -> String {
    plain(title).chars().take(MAX_TITLE_CHARS).collect()
}

/// Maximum length of a stored title, in characters.
const MAX_TITLE_CHARS: usize = 500;

/// Converts a time to its stored form.
pub(crate) fn micros(at: DateTime<Utc>) -> i64 {
    at.timestamp_micros()
}

/// Converts a stored time.
pub(crate) fn moment(micros: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(micros).unwrap_or_default()
}
