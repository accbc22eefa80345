//! Routes of runs that only DeerFlow's dialect has.

use super::operations::read;
use crate::openapi::groups::{FEEDBACK, TRANSCRIPTS};
use crate::openapi::{Routes, THREAD_RUNS, flag, number, post, texts, whole_number, word};
use crate::routes::{feedback, journal, runs};

pub(super) fn routes() -> Routes {
    let follow = post(
        "/threads/{thread_id}/runs/{run_id}/stream",
        "cancel_and_stream_run",
        "Streams a run's events, after an optional cancel.",
    )
    .tag(THREAD_RUNS)
    .ids();
    let messages = read(
        TRANSCRIPTS,
        "/runs/{run_id}/messages",
        "list_messages_of_any_run",
        "Lists the messages of a run of any thread.",
    );
    let of_run = read(
        FEEDBACK,
        "/runs/{run_id}/feedback",
        "list_feedback_of_any_run",
        "Lists the feedback on a run of any thread.",
    );
    Routes::default()
        .routes(
            follow
                .query(
                    "action",
                    word(runs::ACTIONS),
                    "Cancels the run first; `rollback` also reverts its changes.",
                )
                .query(
                    "wait",
                    flag(),
                    "With `action`: waits until the run has ended, and sends no events.",
                )
                .query("stream_mode", texts(), "Not used; all events are sent.")
                .header(
                    "last-event-id",
                    "Id of the last received event; -1 for all events.",
                )
                .streams()
                .returns_empty(204, "The run has ended.")
                .fails_with(&[409])
                .handled_by(runs::cancel_and_follow),
        )
        .routes(
            messages
                .query("limit", number(1, 200, 50), "Maximum number of results.")
                .query(
                    "after_seq",
                    whole_number(0),
                    "Only rows after this one, oldest first.",
                )
                .query("before_seq", whole_number(1), "Only rows before this one.")
                .handled_by(journal::messages_of_any_run),
        )
        .routes(of_run.handled_by(feedback::list_of_any_run))
}
