//! Routes under `/threads`, except those of runs.

use crate::openapi::{Routes, THREADS as TAG, delete, flag, get, number, patch, post, text, texts};
use crate::requests::bodies::{
    HistorySearch, StateAt, StatePatch, StateUpdate, ThreadCount, ThreadCreate, ThreadPatch,
    ThreadPrune, ThreadSearch,
};
use crate::responses::documented::{
    Count, StateUpdated, Thread, ThreadPruned, ThreadState, ThreadStates, ThreadStorage, Threads,
};
use crate::routes::{runs, threads};

const ONE: &str = "/threads/{thread_id}";
const STATE: &str = "/threads/{thread_id}/state";
const HISTORY: &str = "/threads/{thread_id}/history";

/// Routes of both dialects.
pub(super) fn shared() -> Routes {
    rows().merge(states())
}

fn rows() -> Routes {
    let create = post("/threads", "create_thread", "Creates a thread.").tag(TAG);
    let search = post("/threads/search", "search_threads", "Searches threads.").tag(TAG);
    let count = post("/threads/count", "count_threads", "Counts threads.").tag(TAG);
    let prune = post(
        "/threads/prune",
        "prune_threads",
        "Deletes threads, or their history except the last state.",
    )
    .tag(TAG);
    let read = get(ONE, "get_thread", "Returns a thread.").tag(TAG).ids();
    let change = patch(
        ONE,
        "patch_thread",
        "Updates a thread; its metadata is merged one level deep.",
    )
    .tag(TAG)
    .ids();
    let remove = delete(
        ONE,
        "delete_thread",
        "Deletes a thread with its runs, states and files.",
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
                .idempotent()
                .body::<ThreadCreate>()
                .returns::<Thread>("The thread.")
                .fails_with(&[400, 404, 409])
                .handled_by(threads::create),
        )
        .routes(
            search
                .optional_body::<ThreadSearch>()
                .returns::<Threads>("A page of threads.")
                .handled_by(threads::search),
        )
        .routes(
            count
                .optional_body::<ThreadCount>()
                .returns::<Count>("Number of matches.")
                .handled_by(threads::count),
        )
        .routes(
            prune
                .body::<ThreadPrune>()
                .returns::<ThreadPruned>("Number of pruned threads.")
                .handled_by(threads::prune),
        )
        .routes(
            read.query(
                "include",
                texts(),
                "`ttl` includes the thread's time to live.",
            )
            .returns::<Thread>("The thread.")
            .handled_by(threads::get),
        )
        .routes(
            change
                .header("prefer", "`return=minimal` for a response without a body.")
                .body::<ThreadPatch>()
                .returns::<Thread>("The updated thread.")
                .returns_empty(204, "Changed.")
                .handled_by(threads::patch),
        )
        .routes(
            remove
                .returns_empty(204, "Deleted.")
                .fails_with(&[409])
                .handled_by(threads::delete),
        )
        .routes(
            copy.returns::<Thread>("The new thread.")
                .fails_with(&[409])
                .handled_by(threads::copy),
        )
}

fn states() -> Routes {
    let newest = get(STATE, "get_thread_state", "Returns the newest state.")
        .tag(TAG)
        .ids();
    let update = post(
        STATE,
        "update_thread_state",
        "Updates the state outside of a run.",
    )
    .tag(TAG)
    .ids();
    let at_body = post(
        "/threads/{thread_id}/state/checkpoint",
        "post_thread_state_at_checkpoint",
        "Returns the state at a checkpoint.",
    );
    let at = get(
        "/threads/{thread_id}/state/{checkpoint_id}",
        "get_thread_state_at_checkpoint",
        "Returns the state at a checkpoint.",
    );
    let by_query = get(HISTORY, "get_thread_history", "Lists states, newest first.")
        .tag(TAG)
        .ids();
    let by_body = post(
        HISTORY,
        "post_thread_history",
        "Searches states, newest first.",
    )
    .tag(TAG)
    .ids();
    let subgraphs =
        "Includes the states of nested agents in pending tool calls, not only their references.";
    Routes::default()
        .routes(
            newest
                .query("subgraphs", flag(), subgraphs)
                .returns::<ThreadState>("The state.")
                .handled_by(threads::state),
        )
        .routes(
            update
                .body::<StateUpdate>()
                .returns::<StateUpdated>("The new checkpoint.")
                .fails_with(&[409])
                .handled_by(threads::update_state),
        )
        .routes(
            at_body
                .tag(TAG)
                .ids()
                .body::<StateAt>()
                .returns::<ThreadState>("The state.")
                .handled_by(threads::state_at_body),
        )
        .routes(
            at.tag(TAG)
                .ids()
                .query("subgraphs", flag(), subgraphs)
                .returns::<ThreadState>("The state.")
                .handled_by(threads::state_at),
        )
        .routes(
            by_query
                .query("limit", number(1, 1000, 1), "Maximum number of results.")
                .query("before", text(), "Only states before this checkpoint.")
                .returns::<ThreadStates>("States, newest first.")
                .handled_by(threads::history_by_query),
        )
        .routes(
            by_body
                .optional_body::<HistorySearch>()
                .returns::<ThreadStates>("States, newest first.")
                .handled_by(threads::history_by_body),
        )
}

/// Routes of the root only.
pub(super) fn root() -> Routes {
    let follow = get(
        "/threads/{thread_id}/stream",
        "join_thread_stream",
        "Streams the events of all runs of a thread.",
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
    let storage = get(
        "/threads/{thread_id}/storage",
        "get_thread_storage",
        "Returns the size of a thread's stored states.",
    )
    .tag(TAG)
    .ids();
    let modes = "Events to send: `run_modes`, `lifecycle`, `state_update`.";
    Routes::default()
        .routes(
            describe
                .body::<StatePatch>()
                .returns_empty(204, "Changed.")
                .fails_with(&[409])
                .handled_by(threads::patch_state),
        )
        .routes(
            storage
                .returns::<ThreadStorage>("Numbers and sizes.")
                .handled_by(threads::storage),
        )
        .routes(
            follow
                .query("stream_modes", texts(), modes)
                .query("stream_mode", texts(), modes)
                .header("Last-Event-ID", "Id of the last received event.")
                .streams()
                .handled_by(runs::follow_thread),
        )
}
