//! Files, transcripts, goals and feedback of threads, and aids around them.

use super::{FEEDBACK, FILES, TRANSCRIPTS, ask, read, remove, write};
use crate::openapi::{Routes, flag, get, number, text, texts, whole_number, word};
use crate::routes::threads::goal;
use crate::routes::{aids, artifacts, catalog, feed, feedback, mcp, runs, threads, uploads};

pub(super) fn routes() -> Routes {
    aids_and_goals()
        .merge(mcp_tasks())
        .merge(files())
        .merge(transcripts())
        .merge(opinions())
}

fn aids_and_goals() -> Routes {
    const GOAL: &str = "/threads/{thread_id}/goal";
    let suggest = ask(
        TRANSCRIPTS,
        "/threads/{thread_id}/suggestions",
        "suggest_questions",
        "Suggests questions that may follow.",
    );
    let set = write(TRANSCRIPTS, GOAL, "put_goal", "Sets the goal of a thread.");
    let compact = ask(
        TRANSCRIPTS,
        "/threads/{thread_id}/compact",
        "compact_thread",
        "Shortens what the model sees of a thread.",
    );
    let again = ask(
        TRANSCRIPTS,
        "/threads/{thread_id}/runs/regenerate/prepare",
        "prepare_regenerate",
        "Prepares another answer.",
    );
    let edit = ask(
        TRANSCRIPTS,
        "/threads/{thread_id}/runs/edit-regenerate/prepare",
        "prepare_edit",
        "Prepares an answer to an edited text.",
    );
    Routes::default()
        .routes(suggest.body("SuggestionsAsk").by(aids::suggest))
        .routes(read(TRANSCRIPTS, GOAL, "get_goal", "Reads the goal of a thread.").by(goal::get))
        .routes(set.body("GoalPut").refuses(&[409]).by(goal::put))
        .routes(
            remove(
                TRANSCRIPTS,
                GOAL,
                "delete_goal",
                "Removes the goal of a thread.",
            )
            .refuses(&[409])
            .by(goal::delete),
        )
        .routes(
            compact
                .body("ThreadCompact")
                .refuses(&[409])
                .by(threads::compact),
        )
        .routes(
            again
                .body("RegeneratePrepare")
                .refuses(&[409])
                .by(runs::prepare_regenerate),
        )
        .routes(
            edit.body("EditPrepare")
                .refuses(&[409])
                .by(runs::prepare_edit),
        )
}

fn mcp_tasks() -> Routes {
    let list = read(
        TRANSCRIPTS,
        "/threads/{thread_id}/mcp-tasks",
        "list_mcp_tasks",
        "Lists the MCP tasks of a thread; there are none.",
    );
    let one = read(
        TRANSCRIPTS,
        "/threads/{thread_id}/mcp-tasks/{task_id}",
        "get_mcp_task",
        "Reads an MCP task; there is none.",
    );
    let cancel = ask(
        TRANSCRIPTS,
        "/threads/{thread_id}/mcp-tasks/{task_id}/cancel",
        "cancel_mcp_task",
        "Cancels an MCP task; there is none.",
    );
    Routes::default()
        .routes(
            list.query("limit", number(1, 100, 100), "How many at most.")
                .by(mcp::tasks),
        )
        .routes(one.by(mcp::task))
        .routes(cancel.by(mcp::task))
}

fn files() -> Routes {
    const ARTIFACT: &str = "/threads/{thread_id}/artifacts/{*path}";
    let limits = read(
        FILES,
        "/threads/{thread_id}/uploads/limits",
        "get_upload_limits",
        "Says how much may be uploaded.",
    );
    let upload = ask(
        FILES,
        "/threads/{thread_id}/uploads",
        "upload_files",
        "Uploads files.",
    );
    let list = read(
        FILES,
        "/threads/{thread_id}/uploads/list",
        "list_uploads",
        "Lists the uploaded files.",
    );
    let gone = remove(
        FILES,
        "/threads/{thread_id}/uploads/{filename}",
        "delete_upload",
        "Removes an uploaded file.",
    );
    let artifact = get(
        ARTIFACT,
        "get_artifact",
        "Reads a file that the agent made, or one inside a `.skill` archive.",
    )
    .tag(FILES)
    .names();
    let edit = write(
        FILES,
        ARTIFACT,
        "put_artifact",
        "Saves an edited text, unless the file changed since it was opened.",
    );
    Routes::default()
        .routes(limits.by(catalog::upload_limits))
        .routes(upload.repeatable().form("UploadForm").by(uploads::post))
        .routes(list.by(uploads::list))
        .routes(gone.by(uploads::delete))
        .routes(
            artifact
                .query("download", flag(), "Whether browsers save it.")
                .header("range", "The part to read.")
                .answers_text(
                    "application/octet-stream",
                    "Its content, of its own media type.",
                )
                .refuses(&[413])
                .by(artifacts::get),
        )
        .routes(
            edit.body("ArtifactEdit")
                .refuses(&[409, 412])
                .by(artifacts::put),
        )
}

fn transcripts() -> Routes {
    const RUN_EVENTS: &str = "/threads/{thread_id}/runs/{run_id}/events";
    const CHANGES: &str = "/threads/{thread_id}/runs/{run_id}/workspace-changes";
    let page = read(
        TRANSCRIPTS,
        "/threads/{thread_id}/messages/page",
        "get_message_page",
        "Reads a page of a thread's messages.",
    );
    let of_run = read(
        TRANSCRIPTS,
        "/threads/{thread_id}/runs/{run_id}/messages",
        "list_run_messages",
        "Lists a run's messages.",
    );
    let usage = read(
        TRANSCRIPTS,
        "/threads/{thread_id}/token-usage",
        "get_token_usage",
        "Adds up the tokens and the cost of a thread.",
    );
    Routes::default()
        .routes(
            read(
                TRANSCRIPTS,
                "/threads/{thread_id}/messages",
                "list_messages",
                "Lists a thread's messages.",
            )
            .query("limit", number(1, 200, 50), "How many at most.")
            .query(
                "after_seq",
                whole_number(0),
                "Only those behind this row, oldest first.",
            )
            .query("before_seq", whole_number(1), "Only those before this row.")
            .by(feed::messages),
        )
        .routes(
            page.query("limit", number(1, 200, 50), "How many at most.")
                .query("before_seq", whole_number(1), "Only those before this row.")
                .by(feed::page),
        )
        .routes(
            of_run
                .query("limit", number(1, 200, 50), "How many at most.")
                .query(
                    "after_seq",
                    whole_number(0),
                    "Only those behind this row, oldest first.",
                )
                .query("before_seq", whole_number(1), "Only those before this row.")
                .by(feed::run_messages),
        )
        .routes(
            read(
                TRANSCRIPTS,
                RUN_EVENTS,
                "list_run_events",
                "Lists a run's journal.",
            )
            .query("limit", number(1, 2000, 500), "How many at most.")
            .query("event_types", texts(), "Only those of these types.")
            .query("after_seq", whole_number(0), "Only those behind this row.")
            .query("task_id", text(), "Only those of this subagent's task.")
            .by(feed::run_events),
        )
        .routes(
            read(
                TRANSCRIPTS,
                CHANGES,
                "get_workspace_changes",
                "Lists the files that a run changed.",
            )
            .query(
                "include_files",
                switch(),
                "Whether the files are listed (`true` when absent).",
            )
            .query(
                "include_diff",
                switch(),
                "Whether differences of texts are shown (`true` when absent).",
            )
            .by(feed::workspace_changes),
        )
        .routes(
            usage
                .query("include_active", flag(), "Whether runs at work count.")
                .by(feed::token_usage),
        )
}

fn opinions() -> Routes {
    const ALL: &str = "/threads/{thread_id}/runs/{run_id}/feedback";
    let one = remove(
        FEEDBACK,
        "/threads/{thread_id}/runs/{run_id}/feedback/{feedback_id}",
        "delete_one_feedback",
        "Removes one feedback.",
    );
    let stats = read(
        FEEDBACK,
        "/threads/{thread_id}/runs/{run_id}/feedback/stats",
        "get_feedback_stats",
        "Adds up the feedback on a run.",
    );
    Routes::default()
        .routes(
            read(
                FEEDBACK,
                ALL,
                "list_feedback",
                "Lists the feedback on a run.",
            )
            .by(feedback::list),
        )
        .routes(
            write(
                FEEDBACK,
                ALL,
                "put_feedback",
                "Writes the caller's feedback on a run.",
            )
            .body("FeedbackWrite")
            .by(feedback::put),
        )
        .routes(
            ask(
                FEEDBACK,
                ALL,
                "post_feedback",
                "Writes feedback on a run or a message.",
            )
            .body("FeedbackWrite")
            .by(feedback::post),
        )
        .routes(
            remove(
                FEEDBACK,
                ALL,
                "delete_feedback",
                "Removes the caller's feedback on a run.",
            )
            .by(feedback::delete),
        )
        .routes(stats.by(feedback::stats))
        .routes(one.by(feedback::delete))
}

/// True or false, where true is the default.
fn switch() -> utoipa::openapi::schema::Schema {
    word(&[("true", ()), ("false", ())])
}
