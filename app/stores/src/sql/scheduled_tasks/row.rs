//! Conversion between tasks, their runs and their rows.

use deerflow_core::ids::{RunId, ThreadId};
use deerflow_domain::scheduled_tasks::{
    ContextMode, ScheduledTask, TaskRun, TaskRunStatus, TaskSchedule, TaskStatus, TaskTrigger,
};
use sea_orm::DbErr;

use crate::db::entity::{micros, moment, plain, scheduled_task, scheduled_task_run};

/// Builds the row of a task.
pub(super) fn task_row(task: &ScheduledTask) -> scheduled_task::Model {
    let (run_at, cron) = match &task.schedule {
        TaskSchedule::Once(at) => (Some(micros(*at)), None),
        TaskSchedule::Cron(fields) => (None, Some(plain(fields))),
    };
    scheduled_task::Model {
        task_id: task.task_id.clone(),
        user_id: plain(&task.user_id),
        context_mode: task.context_mode.as_str().to_owned(),
        thread_id: task.thread_id.as_ref().map(ToString::to_string),
        title: plain(&task.title),
        prompt: plain(&task.prompt),
        run_at,
        cron,
        timezone: plain(&task.timezone),
        status: task.status.as_str().to_owned(),
        next_run_at: task.next_run_at.map(micros),
        last_run_at: task.last_run_at.map(micros),
        last_run_id: task.last_run_id.as_ref().map(ToString::to_string),
        last_thread_id: task.last_thread_id.as_ref().map(ToString::to_string),
        last_error: task.last_error.as_deref().map(plain),
        run_count: to_signed(task.run_count),
        version: to_signed(task.version),
        created_at: micros(task.created_at),
        updated_at: micros(task.updated_at),
    }
}

/// Reads the row of a task. The error of an unreadable one names the task.
pub(super) fn task_of(row: scheduled_task::Model) -> Result<ScheduledTask, DbErr> {
    let id = row.task_id.clone();
    read_task(row).map_err(|reason| damaged(&id, &reason))
}

fn read_task(row: scheduled_task::Model) -> Result<ScheduledTask, String> {
    Ok(ScheduledTask {
        context_mode: ContextMode::parse(&row.context_mode).ok_or("context mode")?,
        thread_id: optional_thread(row.thread_id)?,
        schedule: match (row.run_at, row.cron) {
            (Some(at), None) => TaskSchedule::Once(moment(at)),
            (None, Some(fields)) => TaskSchedule::Cron(fields),
            _ => return Err("schedule".to_owned()),
        },
        status: TaskStatus::parse(&row.status).ok_or("status")?,
        next_run_at: row.next_run_at.map(moment),
        last_run_at: row.last_run_at.map(moment),
        last_run_id: row
            .last_run_id
            .map(RunId::parse)
            .transpose()
            .map_err(|error| error.to_string())?,
        last_thread_id: optional_thread(row.last_thread_id)?,
        run_count: row.run_count.unsigned_abs(),
        version: row.version.unsigned_abs(),
        created_at: moment(row.created_at),
        updated_at: moment(row.updated_at),
        task_id: row.task_id,
        user_id: row.user_id,
        title: row.title,
        prompt: row.prompt,
        timezone: row.timezone,
        last_error: row.last_error,
    })
}

/// Builds the row of a task's run.
pub(super) fn run_row(run: &TaskRun) -> scheduled_task_run::Model {
    scheduled_task_run::Model {
        task_run_id: run.task_run_id.clone(),
        task_id: run.task_id.clone(),
        user_id: plain(&run.user_id),
        thread_id: run.thread_id.to_string(),
        run_id: run.run_id.to_string(),
        scheduled_for: micros(run.scheduled_for),
        cause: run.trigger.as_str().to_owned(),
        status: run.status.as_str().to_owned(),
        error: run.error.as_deref().map(plain),
        started_at: run.started_at.map(micros),
        finished_at: run.finished_at.map(micros),
        claimed_at: micros(run.claimed_at),
        created_at: micros(run.created_at),
    }
}

/// Reads the row of a task's run. The error of an unreadable one names the run.
pub(super) fn run_of(row: scheduled_task_run::Model) -> Result<TaskRun, DbErr> {
    let id = row.task_run_id.clone();
    read_run(row).map_err(|reason| damaged(&id, &reason))
}

fn read_run(row: scheduled_task_run::Model) -> Result<TaskRun, String> {
    Ok(TaskRun {
        thread_id: ThreadId::parse(row.thread_id).map_err(|error| error.to_string())?,
        run_id: RunId::parse(row.run_id).map_err(|error| error.to_string())?,
        scheduled_for: moment(row.scheduled_for),
        trigger: TaskTrigger::parse(&row.cause).ok_or("cause")?,
        status: TaskRunStatus::parse(&row.status).ok_or("status")?,
        started_at: row.started_at.map(moment),
        finished_at: row.finished_at.map(moment),
        claimed_at: moment(row.claimed_at),
        created_at: moment(row.created_at),
        task_run_id: row.task_run_id,
        task_id: row.task_id,
        user_id: row.user_id,
        error: row.error,
    })
}

/// Converts rows, and omits unreadable ones, so that they do not hide the others.
pub(super) fn readable<M, T>(rows: Vec<M>, convert: fn(M) -> Result<T, DbErr>) -> Vec<T> {
    let logged = |row| {
        convert(row)
            .inspect_err(|error| tracing::error!(%error, "a scheduled task is damaged, omitted"))
            .ok()
    };
    rows.into_iter().filter_map(logged).collect()
}

fn damaged(id: &str, reason: &str) -> DbErr {
    DbErr::Type(format!("{id} is damaged: {reason}"))
}

fn optional_thread(id: Option<String>) -> Result<Option<ThreadId>, String> {
    id.map(ThreadId::parse)
        .transpose()
        .map_err(|error| error.to_string())
}

fn to_signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
