//! Runs, on a thread and without one.

use crate::openapi::{
    Routes, STATELESS_RUNS, THREAD_RUNS as TAG, delete, flag, get, number, post, texts, word,
};
use crate::routes::runs;

const ON_THREAD: &str = "/threads/{thread_id}/runs";
const ONE: &str = "/threads/{thread_id}/runs/{run_id}";
const REFUSALS: &[u16] = &[404, 409];

/// In both dialects.
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
    let create = post(ON_THREAD, "create_run", "Begins a run in the background.")
        .tag(TAG)
        .ids();
    let stream = post(
        "/threads/{thread_id}/runs/stream",
        "stream_run",
        "Begins a run and follows it.",
    )
    .tag(TAG)
    .ids();
    let wait = post(
        "/threads/{thread_id}/runs/wait",
        "wait_run",
        "Begins a run and waits for its end.",
    )
    .tag(TAG)
    .ids();
    Routes::default()
        .routes(
            list.query("limit", number(1, 1000, 10), "How many at most.")
                .query(
                    "offset",
                    number(0, u32::MAX, 0),
                    "How many to leave out first.",
                )
                .query("status", word(runs::STATUSES), "Only those in this status.")
                .query("select", texts(), "Only these fields.")
                .answers("Runs", "A page of them.")
                .by(runs::list),
        )
        .routes(
            create
                .repeatable()
                .body("RunCreate")
                .answers("Run", "The run.")
                .refuses(REFUSALS)
                .by(runs::create),
        )
        .routes(
            stream
                .repeatable()
                .body("RunCreate")
                .streams()
                .refuses(REFUSALS)
                .by(runs::stream),
        )
        .routes(
            wait.repeatable()
                .body("RunCreate")
                .answers("RunOutcome", "The last state, or `__error__`.")
                .refuses(REFUSALS)
                .by(runs::wait),
        )
}

fn one() -> Routes {
    let read = get(ONE, "get_run", "Reads a run.").tag(TAG).ids();
    let remove = delete(ONE, "delete_run", "Removes a run with its checkpoints.")
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
        "Waits for a run's end.",
    )
    .tag(TAG)
    .ids();
    let follow = get(
        "/threads/{thread_id}/runs/{run_id}/stream",
        "join_run_stream",
        "Follows a run.",
    )
    .tag(TAG)
    .ids();
    let many = post("/runs/cancel", "cancel_runs", "Cancels several runs.").tag(TAG);
    let action = || word(runs::ACTIONS);
    Routes::default()
        .routes(read.answers("Run", "The run.").by(runs::get))
        .routes(
            remove
                .answers_empty(204, "It is gone.")
                .refuses(&[409])
                .by(runs::delete),
        )
        .routes(
            cancel
                .query("wait", flag(), "Whether to answer when it is over.")
                .query(
                    "action",
                    action(),
                    "Whether what it did stays (`interrupt`, the default) or goes (`rollback`).",
                )
                .answers("Nothing", "It is over.")
                .answers_empty(202, "It will be.")
                .refuses(&[409])
                .by(runs::cancel),
        )
        .routes(
            join.answers("RunOutcome", "The last state, or `__error__`.")
                .by(runs::join),
        )
        .routes(
            follow
                .query("stream_mode", texts(), "Only the events of these modes.")
                .query(
                    "cancel_on_disconnect",
                    flag(),
                    "Whether the run is cancelled when the reader leaves.",
                )
                .header("last-event-id", "The last event that was seen; -1 for all.")
                .streams()
                .refuses(&[409])
                .by(runs::follow),
        )
        .routes(
            many.query(
                "action",
                action(),
                "Whether what they did stays (`interrupt`, the default) or goes (`rollback`).",
            )
            .body("RunsCancel")
            .answers_empty(204, "They will be over.")
            .refuses(&[404])
            .by(runs::cancel_many),
        )
}

fn stateless() -> Routes {
    let create = post(
        "/runs",
        "create_stateless_run",
        "Begins a run in the background.",
    )
    .tag(STATELESS_RUNS);
    let stream = post(
        "/runs/stream",
        "stream_stateless_run",
        "Begins a run and follows it.",
    )
    .tag(STATELESS_RUNS);
    let wait = post(
        "/runs/wait",
        "wait_stateless_run",
        "Begins a run and waits for its end.",
    )
    .tag(STATELESS_RUNS);
    Routes::default()
        .routes(
            create
                .repeatable()
                .body("StatelessRunCreate")
                .answers("Run", "The run.")
                .refuses(REFUSALS)
                .by(runs::create_stateless),
        )
        .routes(
            stream
                .repeatable()
                .body("StatelessRunCreate")
                .streams()
                .refuses(REFUSALS)
                .by(runs::stream_stateless),
        )
        .routes(
            wait.repeatable()
                .body("StatelessRunCreate")
                .answers("RunOutcome", "The last state, or `__error__`.")
                .refuses(REFUSALS)
                .by(runs::wait_stateless),
        )
}

/// At the root only.
pub(super) fn root() -> Routes {
    let batch = post(
        "/runs/batch",
        "create_run_batch",
        "Begins several runs in the background.",
    )
    .tag(STATELESS_RUNS);
    Routes::default().routes(
        batch
            .repeatable()
            .body("RunBatch")
            .answers("Runs", "The runs, in order.")
            .refuses(REFUSALS)
            .by(runs::batch),
    )
}
