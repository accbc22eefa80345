//! Routes of runs, with and without a thread.

use crate::openapi::{
    FLOWS, Routes, STATELESS_RUNS, THREAD_RUNS as TAG, delete, flag, get, number, post, texts, word,
};
use crate::requests::bodies::{RunBatch, RunCreate, RunsCancel, ThreadRunCreate};
use crate::responses::documented::{Nothing, Run, RunNodes, RunOutcome, Runs};
use crate::routes::runs;

const ON_THREAD: &str = "/threads/{thread_id}/runs";
const ONE: &str = "/threads/{thread_id}/runs/{run_id}";
const ERRORS: &[u16] = &[404, 409];

/// Routes of both dialects.
pub(super) fn shared() -> Routes {
    on_threads().merge(one()).merge(stateless())
}

fn on_threads() -> Routes {
    let list = get(
        ON_THREAD,
        "list_runs",
        "Lists a thread's runs, newest first.",
    )
    .tag(TAG)
    .ids();
    let create = post(ON_THREAD, "create_run", "Creates a background run.")
        .tag(TAG)
        .ids();
    let stream = post(
        "/threads/{thread_id}/runs/stream",
        "stream_run",
        "Creates a run and streams its events.",
    )
    .tag(TAG)
    .ids();
    let wait = post(
        "/threads/{thread_id}/runs/wait",
        "wait_run",
        "Creates a run and waits for its result.",
    )
    .tag(TAG)
    .ids();
    Routes::default()
        .routes(
            list.query("limit", number(1, 1000, 10), "Maximum number of results.")
                .query(
                    "offset",
                    number(0, u32::MAX, 0),
                    "Number of results to skip.",
                )
                .query(
                    "status",
                    word(runs::STATUSES),
                    "Only results with this status.",
                )
                .query("select", texts(), "Fields to return.")
                .returns::<Runs>("A page of runs.")
                .handled_by(runs::list),
        )
        .routes(
            create
                .idempotent()
                .body::<ThreadRunCreate>()
                .returns::<Run>("The run.")
                .fails_with(ERRORS)
                .handled_by(runs::create),
        )
        .routes(
            stream
                .idempotent()
                .body::<ThreadRunCreate>()
                .streams()
                .fails_with(ERRORS)
                .handled_by(runs::stream),
        )
        .routes(
            wait.idempotent()
                .body::<ThreadRunCreate>()
                .returns::<RunOutcome>("The last state, or an object with `__error__`.")
                .fails_with(ERRORS)
                .handled_by(runs::wait),
        )
}

fn one() -> Routes {
    let read = get(ONE, "get_run", "Returns a run.").tag(TAG).ids();
    let remove = delete(ONE, "delete_run", "Deletes a run with its checkpoints.")
        .tag(TAG)
        .ids();
    let cancel = post(
        "/threads/{thread_id}/runs/{run_id}/cancel",
        "cancel_run",
        "Cancels a run.",
    )
    .tag(TAG)
    .ids();
    let join = get(
        "/threads/{thread_id}/runs/{run_id}/join",
        "join_run",
        "Waits for a run's result.",
    )
    .tag(TAG)
    .ids();
    let follow = get(
        "/threads/{thread_id}/runs/{run_id}/stream",
        "join_run_stream",
        "Streams a run's events.",
    )
    .tag(TAG)
    .ids();
    let nodes = get(
        "/threads/{thread_id}/runs/{run_id}/nodes",
        "list_run_nodes",
        "Returns the states of a flow's nodes in a run.",
    )
    .tag(FLOWS)
    .ids();
    let many = post("/runs/cancel", "cancel_runs", "Cancels several runs.").tag(TAG);
    let action = || word(runs::ACTIONS);
    Routes::default()
        .routes(read.returns::<Run>("The run.").handled_by(runs::get))
        .routes(
            nodes
                .returns::<RunNodes>("States of the nodes; none for a run of another agent.")
                .handled_by(runs::nodes),
        )
        .routes(
            remove
                .returns_empty(204, "Deleted.")
                .fails_with(&[409])
                .handled_by(runs::delete),
        )
        .routes(
            cancel
                .query("wait", flag(), "Waits until the run has ended.")
                .query(
                    "action",
                    action(),
                    "`interrupt` (the default) keeps the run's changes, `rollback` reverts them.",
                )
                .returns::<Nothing>("The run has ended.")
                .returns_empty(202, "Cancellation accepted.")
                .fails_with(&[409])
                .handled_by(runs::cancel),
        )
        .routes(
            join.query(
                "cancel_on_disconnect",
                flag(),
                "Cancels the run when the client disconnects.",
            )
            .returns::<RunOutcome>("The last state, or an object with `__error__`.")
            .handled_by(runs::join),
        )
        .routes(
            follow
                .query("stream_mode", texts(), "Only events of these stream modes.")
                .query(
                    "cancel_on_disconnect",
                    flag(),
                    "Cancels the run when the client disconnects.",
                )
                .header(
                    "Last-Event-ID",
                    "Id of the last received event; -1 for all events.",
                )
                .streams()
                .fails_with(&[409])
                .handled_by(runs::follow),
        )
        .routes(
            many.query(
                "action",
                action(),
                "`interrupt` (the default) keeps the runs' changes, `rollback` reverts them.",
            )
            .body::<RunsCancel>()
            .returns_empty(204, "Cancellation of all matching runs accepted.")
            .fails_with(&[404])
            .handled_by(runs::cancel_many),
        )
}

fn stateless() -> Routes {
    let create =
        post("/runs", "create_stateless_run", "Creates a background run.").tag(STATELESS_RUNS);
    let stream = post(
        "/runs/stream",
        "stream_stateless_run",
        "Creates a run and streams its events.",
    )
    .tag(STATELESS_RUNS);
    let wait = post(
        "/runs/wait",
        "wait_stateless_run",
        "Creates a run and waits for its result.",
    )
    .tag(STATELESS_RUNS);
    Routes::default()
        .routes(
            create
                .idempotent()
                .body::<RunCreate>()
                .returns::<Run>("The run.")
                .fails_with(ERRORS)
                .handled_by(runs::create_stateless),
        )
        .routes(
            stream
                .idempotent()
                .body::<RunCreate>()
                .streams()
                .fails_with(ERRORS)
                .handled_by(runs::stream_stateless),
        )
        .routes(
            wait.idempotent()
                .body::<RunCreate>()
                .returns::<RunOutcome>("The last state, or an object with `__error__`.")
                .fails_with(ERRORS)
                .handled_by(runs::wait_stateless),
        )
}

/// Routes of the root only.
pub(super) fn root() -> Routes {
    let batch = post(
        "/runs/batch",
        "create_run_batch",
        "Creates several background runs.",
    )
    .tag(STATELESS_RUNS);
    Routes::default().routes(
        batch
            .idempotent()
            .body::<RunBatch>()
            .returns::<Runs>("The runs, in the order of the request.")
            .fails_with(ERRORS)
            .handled_by(runs::batch),
    )
}
