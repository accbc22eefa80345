//! Routes of scheduled tasks.

use super::operations::{change, read, remove, send};
use crate::openapi::groups::SCHEDULED_TASKS;
use crate::openapi::{Routes, number};
use crate::requests::bodies::{TaskCreate, TaskPatch};
use crate::routes::scheduled_tasks;

const ALL: &str = "/scheduled-tasks";
const ONE: &str = "/scheduled-tasks/{task_id}";

pub(super) fn routes() -> Routes {
    tasks().merge(actions())
}

fn tasks() -> Routes {
    let list = read(
        SCHEDULED_TASKS,
        ALL,
        "list_scheduled_tasks",
        "Lists the caller's scheduled tasks, newest first.",
    );
    let of_thread = read(
        SCHEDULED_TASKS,
        "/threads/{thread_id}/scheduled-tasks",
        "list_thread_scheduled_tasks",
        "Lists the scheduled tasks that reuse a thread.",
    );
    let create = send(
        SCHEDULED_TASKS,
        ALL,
        "create_scheduled_task",
        "Creates a scheduled task.",
    );
    let one = read(
        SCHEDULED_TASKS,
        ONE,
        "get_scheduled_task",
        "Returns a scheduled task.",
    );
    let patch = change(
        SCHEDULED_TASKS,
        ONE,
        "patch_scheduled_task",
        "Updates a scheduled task.",
    );
    let delete = remove(
        SCHEDULED_TASKS,
        ONE,
        "delete_scheduled_task",
        "Deletes a scheduled task with the list of its runs.",
    );
    Routes::default()
        .routes(list.handled_by(scheduled_tasks::list))
        .routes(of_thread.handled_by(scheduled_tasks::list_on_thread))
        .routes(
            create
                .body::<TaskCreate>()
                .fails_with(&[404])
                .handled_by(scheduled_tasks::create),
        )
        .routes(one.handled_by(scheduled_tasks::get))
        .routes(
            patch
                .body::<TaskPatch>()
                .fails_with(&[409])
                .handled_by(scheduled_tasks::patch),
        )
        .routes(delete.handled_by(scheduled_tasks::delete))
}

fn actions() -> Routes {
    let pause = send(
        SCHEDULED_TASKS,
        "/scheduled-tasks/{task_id}/pause",
        "pause_scheduled_task",
        "Pauses a scheduled task.",
    );
    let resume = send(
        SCHEDULED_TASKS,
        "/scheduled-tasks/{task_id}/resume",
        "resume_scheduled_task",
        "Resumes a scheduled task.",
    );
    let trigger = send(
        SCHEDULED_TASKS,
        "/scheduled-tasks/{task_id}/trigger",
        "trigger_scheduled_task",
        "Runs a scheduled task now.",
    );
    let runs = read(
        SCHEDULED_TASKS,
        "/scheduled-tasks/{task_id}/runs",
        "list_scheduled_task_runs",
        "Lists the runs of a scheduled task, newest first.",
    );
    Routes::default()
        .routes(pause.fails_with(&[409]).handled_by(scheduled_tasks::pause))
        .routes(
            resume
                .fails_with(&[409])
                .handled_by(scheduled_tasks::resume),
        )
        .routes(
            trigger
                .fails_with(&[409])
                .handled_by(scheduled_tasks::trigger),
        )
        .routes(
            runs.query("limit", number(1, 200, 50), "Maximum number of results.")
                .query(
                    "offset",
                    number(0, 1_000_000_000, 0),
                    "Number of results to skip.",
                )
                .handled_by(scheduled_tasks::runs),
        )
}
