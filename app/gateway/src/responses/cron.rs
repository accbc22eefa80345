//! JSON of crons.

use deerflow_domain::crons::{AfterRun, Cron};
use harness::clock::iso;
use serde_json::{Value, json};

/// Returns a cron.
pub fn cron_json(cron: &Cron) -> Value {
    json!({
        "cron_id": cron.cron_id,
        "assistant_id": cron.assistant_id,
        "thread_id": cron.thread_id,
        "user_id": cron.user_id,
        "end_time": cron.end_time.map(iso),
        "schedule": cron.schedule,
        "timezone": cron.timezone,
        "payload": cron.payload,
        "next_run_date": cron.next_run_date.map(iso),
        "metadata": cron.metadata,
        "on_run_completed": cron.on_run_completed.map(AfterRun::as_str),
        "enabled": cron.enabled,
        "created_at": iso(cron.created_at),
        "updated_at": iso(cron.updated_at),
    })
}
