//! Tests of changes of a task's schedule and status.

use deerflow_domain::scheduled_tasks::{ContextMode, TaskSchedule};
use serde_json::{Map, Value, json};

use super::*;

fn moment(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).unwrap().to_utc()
}

/// Returns a task that runs at 09:00 in UTC.
fn once(status: TaskStatus) -> ScheduledTask {
    let at = moment("2026-11-21T09:00:00Z");
    ScheduledTask {
        task_id: "t".to_owned(),
        user_id: "ann".to_owned(),
        context_mode: ContextMode::FreshThread,
        thread_id: None,
        title: "a title".to_owned(),
        prompt: "a prompt".to_owned(),
        schedule: TaskSchedule::Once(at),
        timezone: "UTC".to_owned(),
        status,
        next_run_at: (status == TaskStatus::Enabled).then_some(at),
        last_run_at: None,
        last_run_id: None,
        last_thread_id: None,
        last_error: None,
        run_count: 0,
        version: 1,
        created_at: at,
        updated_at: at,
    }
}

fn patch(task: &ScheduledTask, fields: Value, now: &str) -> Result<ScheduledTask, ApiError> {
    let fields: Map<String, Value> = fields.as_object().unwrap().clone();
    let body: TaskPatch = serde_json::from_value(fields.into()).unwrap();
    patched(task, &body, moment(now), TimeDelta::seconds(60))
}

fn past() -> ApiError {
    ApiError::Unprocessable("once schedule must be in the future".to_owned())
}

#[test]
fn finished_task_can_be_edited_without_a_new_time() {
    let task = once(TaskStatus::Completed);
    let fields = json!({
        "title": "b", "schedule_spec": { "run_at": "2026-11-21T09:00:00+00:00" }, "timezone": "UTC",
    });
    let changed = patch(&task, fields, "2026-12-01T00:00:00Z").unwrap();
    assert_eq!(changed.title, "b");
    assert_eq!(
        (changed.status, changed.next_run_at),
        (TaskStatus::Completed, None)
    );
}

#[test]
fn new_time_enables_a_finished_task_and_not_a_paused_one() {
    let (fields, now) = (
        json!({ "schedule_spec": { "run_at": "2026-12-24T09:00" } }),
        "2026-12-01T00:00:00Z",
    );
    let next = Some(moment("2026-12-24T09:00:00Z"));
    for (status, expected) in [
        (TaskStatus::Failed, (TaskStatus::Enabled, next)),
        (TaskStatus::Enabled, (TaskStatus::Enabled, next)),
        (TaskStatus::Paused, (TaskStatus::Paused, None)),
    ] {
        let changed = patch(&once(status), fields.clone(), now).unwrap();
        assert_eq!((changed.status, changed.next_run_at), expected);
    }
    let late = patch(&once(TaskStatus::Failed), fields, "2026-12-25T00:00:00Z");
    assert_eq!(late, Err(past()));
}

#[test]
fn change_of_the_text_keeps_the_next_time() {
    let task = once(TaskStatus::Enabled);
    let changed = patch(&task, json!({ "prompt": "b" }), "2026-11-22T00:00:00Z").unwrap();
    assert_eq!(changed.next_run_at, task.next_run_at);
}

#[test]
fn task_is_resumed_only_before_its_time() {
    let task = once(TaskStatus::Paused);
    let resumed_at = |now| resumed(&task, moment(now));
    assert_eq!(
        resumed_at("2026-11-21T08:00:00Z"),
        Ok(once(TaskStatus::Enabled))
    );
    assert_eq!(resumed_at("2026-11-21T09:00:00Z"), Err(past()));
}

#[test]
fn finished_task_is_not_paused() {
    assert_eq!(
        paused(&once(TaskStatus::Enabled)),
        Ok(once(TaskStatus::Paused))
    );
    let finished = paused(&once(TaskStatus::Cancelled));
    assert!(matches!(finished, Err(ApiError::Conflict(_))));
}
