//! `/threads`, but for their runs.

use crate::openapi::{Routes, THREADS as TAG, delete, flag, get, number, patch, post, text, texts};
use crate::routes::{runs, threads};

const ONE: &str = "/threads/{thread_id}";
const STATE: &str = "/threads/{thread_id}/state";
const HISTORY: &str = "/threads/{thread_id}/history";

/// In both dialects.
pub(super) fn shared() -> Routes {
    rows().merge(states())
}

fn rows() -> Routes {
    let create = post("/threads", "create_thread", "Makes a thread.").tag(TAG);
    let search = post("/threads/search", "search_threads", "Finds threads.").tag(TAG);
    let count = post("/threads/count", "count_threads", "Counts threads.").tag(TAG);
    let prune = post(
        "/threads/prune",
        "prune_threads",
        "Removes threads, or all but their last state.",
    )
    .tag(TAG);
    let read = get(ONE, "get_thread", "Reads a thread.").tag(TAG).ids();
    let change = patch(ONE, "patch_thread", "Merges metadata, one level deep.")
        .tag(TAG)
        .ids();
    let remove = delete(
        ONE,
        "delete_thread",
        "Removes a thread with everything on it.",
    )
    .tag(TAG)
    .ids();
    let copy = post(
        "/threads/{thread_id}/copy",
        "copy_thread",
        "Copies a thread with its history.",
    )
    .tag(TAG)
    .ids();
    Routes::default()
        .routes(
            create
                .repeatable()
                .body("ThreadCreate")
                .answers("Thread", "The thread.")
                .refuses(&[400, 404, 409])
                .by(threads::create),
        )
        .routes(
            search
                .optional_body("ThreadSearch")
                .answers("Threads", "A page of them.")
                .by(threads::search),
        )
        .routes(
            count
                .optional_body("ThreadCount")
                .answers("Count", "How many there are.")
                .by(threads::count),
        )
        .routes(
            prune
                .body("ThreadPrune")
                .answers("ThreadPruned", "How many are done with.")
                .by(threads::prune),
        )
        .routes(
            read.query("include", texts(), "`ttl` to see how long it stays.")
                .answers("Thread", "The thread.")
                .by(threads::get),
        )
        .routes(
            change
                .header("prefer", "`return=minimal` for an answer without a body.")
                .body("ThreadPatch")
                .answers("Thread", "The thread as it is now.")
                .answers_empty(204, "Changed.")
                .by(threads::patch),
        )
        .routes(
            remove
                .answers_empty(204, "It is gone.")
                .refuses(&[409])
                .by(threads::delete),
        )
        .routes(
            copy.answers("Thread", "The copy.")
                .refuses(&[409])
                .by(threads::copy),
        )
}

fn states() -> Routes {
    let newest = get(STATE, "get_thread_state", "Reads the newest state.")
        .tag(TAG)
        .ids();
    let update = post(
        STATE,
        "update_thread_state",
        "Changes the state from outside of a run.",
    )
    .tag(TAG)
    .ids();
    let at_body = post(
        "/threads/{thread_id}/state/checkpoint",
        "post_thread_state_at_checkpoint",
        "Reads the state at a checkpoint.",
    );
    let at = get(
        "/threads/{thread_id}/state/{checkpoint_id}",
        "get_thread_state_at_checkpoint",
        "Reads the state at a checkpoint.",
    );
    let by_query = get(HISTORY, "get_thread_history", "Lists states, newest first.")
        .tag(TAG)
        .ids();
    let by_body = post(
        HISTORY,
        "post_thread_history",
        "Lists some of the states, newest first.",
    )
    .tag(TAG)
    .ids();
    let subgraphs =
        "Whether agents inside of calls that are due are shown with their states, not only named.";
    Routes::default()
        .routes(
            newest
                .query("subgraphs", flag(), subgraphs)
                .answers("ThreadState", "The state.")
                .by(threads::state),
        )
        .routes(
            update
                .body("StateUpdate")
                .answers("StateUpdated", "The checkpoint that was made.")
                .refuses(&[409])
                .by(threads::update_state),
        )
        .routes(
            at_body
                .tag(TAG)
                .ids()
                .body("StateAt")
                .answers("ThreadState", "The state.")
                .by(threads::state_at_body),
        )
        .routes(
            at.tag(TAG)
                .ids()
                .query("subgraphs", flag(), subgraphs)
                .answers("ThreadState", "The state.")
                .by(threads::state_at),
        )
        .routes(
            by_query
                .query("limit", number(1, 1000, 1), "How many at most.")
                .query("before", text(), "The checkpoint before which to begin.")
                .answers("ThreadStates", "The states.")
                .by(threads::history_by_query),
        )
        .routes(
            by_body
                .optional_body("HistorySearch")
                .answers("ThreadStates", "The states.")
                .by(threads::history_by_body),
        )
}

/// At the root only.
pub(super) fn root() -> Routes {
    let follow = get(
        "/threads/{thread_id}/stream",
        "join_thread_stream",
        "Follows all runs of a thread.",
    )
    .tag(TAG)
    .ids();
    let describe = patch(
        STATE,
        "patch_thread_state",
        "Merges metadata into the newest checkpoint, one level deep.",
    )
    .tag(TAG)
    .ids();
    let modes = "Which events: `run_modes`, `lifecycle`, `state_update`.";
    Routes::default()
        .routes(
            describe
                .body("StatePatch")
                .answers_empty(204, "Changed.")
                .refuses(&[409])
                .by(threads::patch_state),
        )
        .routes(
            follow
                .query("stream_modes", texts(), modes)
                .query("stream_mode", texts(), modes)
                .header("last-event-id", "The last event that was seen.")
                .streams()
                .by(runs::follow_thread),
        )
}
