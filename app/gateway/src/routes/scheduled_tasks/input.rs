//! Checks of the fields of a task. Pure.

use deerflow_domain::scheduled_tasks::{ContextMode, TaskSchedule};
use harness::ids::ThreadId;
use serde_json::{Map, Value};

use super::thread_not_found;
use crate::error::ApiError;

/// Maximum length of a title, in characters.
pub(super) const MAX_TITLE: usize = 200;
/// Maximum length of a prompt, in characters.
pub(super) const MAX_PROMPT: usize = 20_000;

/// Refuses a text that is empty or has more than `limit` characters. The web UI shows only a
/// `detail` that is a text.
pub(super) fn check_length(key: &str, text: &str, limit: usize) -> Result<(), ApiError> {
    if (1..=limit).contains(&text.chars().take(limit + 1).count()) {
        return Ok(());
    }
    Err(ApiError::Unprocessable(format!(
        "{key} must have 1 to {limit} characters"
    )))
}

/// Reads the context mode and the thread that it needs.
pub(super) fn read_context(
    mode: Option<&str>,
    thread: Option<&str>,
) -> Result<(ContextMode, Option<ThreadId>), ApiError> {
    let unsupported = || ApiError::Unprocessable("Unsupported context_mode".to_owned());
    match mode {
        None => Ok((ContextMode::FreshThread, None)),
        Some(word) => match ContextMode::parse(word).ok_or_else(unsupported)? {
            ContextMode::FreshThread => Ok((ContextMode::FreshThread, None)),
            ContextMode::ReuseThread => {
                let missing =
                    || ApiError::Unprocessable("reuse_thread requires thread_id".to_owned());
                let id = thread.filter(|id| !id.is_empty()).ok_or_else(missing)?;
                let thread = ThreadId::parse(id).map_err(|_| thread_not_found())?;
                Ok((ContextMode::ReuseThread, Some(thread)))
            }
        },
    }
}

/// Reads a schedule of a type in a time zone.
pub(super) fn read_schedule(
    kind: &str,
    spec: &Map<String, Value>,
    zone: &str,
) -> Result<TaskSchedule, ApiError> {
    let field = |key: &str| {
        let text = spec.get(key).and_then(Value::as_str);
        text.ok_or_else(|| ApiError::Unprocessable(format!("{kind} schedule requires {key}")))
    };
    let schedule = match kind {
        "once" => TaskSchedule::once(field("run_at")?, zone),
        "cron" => TaskSchedule::cron(field("cron")?, zone),
        _ => {
            return Err(ApiError::Unprocessable(
                "Unsupported schedule_type".to_owned(),
            ));
        }
    };
    schedule.map_err(|error| ApiError::Unprocessable(error.to_string()))
}
