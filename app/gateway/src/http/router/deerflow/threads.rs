//! Routes of a thread's files, transcripts, goal and feedback, and of auxiliary model features.

use super::operations::{read, remove, send, write};
use crate::openapi::groups::{FEEDBACK, FILES, TRANSCRIPTS};
use crate::openapi::{Routes, flag, get, number, text, texts, whole_number, word};
use crate::requests::bodies::{
    ArtifactEdit, EditPrepare, FeedbackWrite, GoalPut, RegeneratePrepare, SuggestionsAsk,
    ThreadBranch, ThreadCompact, UploadForm,
};
use crate::routes::threads::goal;
use crate::routes::{artifacts, assist, catalog, feedback, journal, mcp, runs, threads, uploads};

pub(super) fn routes() -> Routes {
    assist_and_goals()
        .merge(mcp_tasks())
        .merge(files())
        .merge(transcripts())
        .merge(feedback_routes())
}

fn assist_and_goals() -> Routes {
    const GOAL: &str = "/threads/{thread_id}/goal";
    let suggest = send(
        TRANSCRIPTS,
        "/threads/{thread_id}/suggestions",
        "suggest_questions",
        "Suggests follow-up questions.",
    );
    let set = write(TRANSCRIPTS, GOAL, "put_goal", "Sets the goal of a thread.");
    let compact = send(
        TRANSCRIPTS,
        "/threads/{thread_id}/compact",
        "compact_thread",
        "Compacts the context of a thread.",
    );
    let branch = send(
        TRANSCRIPTS,
        "/threads/{thread_id}/branches",
        "branch_thread",
        "Creates a thread that continues after a turn of this one.",
    );
    let regenerate = send(
        TRANSCRIPTS,
        "/threads/{thread_id}/runs/regenerate/prepare",
        "prepare_regenerate",
        "Prepares the regeneration of an answer.",
    );
    let edit = send(
        TRANSCRIPTS,
        "/threads/{thread_id}/runs/edit-regenerate/prepare",
        "prepare_edit",
        "Prepares the regeneration with an edited message.",
    );
    Routes::default()
        .routes(suggest.body::<SuggestionsAsk>().handled_by(assist::suggest))
        .routes(
            read(
                TRANSCRIPTS,
                GOAL,
                "get_goal",
                "Returns the goal of a thread.",
            )
            .handled_by(goal::get),
        )
        .routes(
            set.body::<GoalPut>()
                .fails_with(&[409])
                .handled_by(goal::put),
        )
        .routes(
            remove(
                TRANSCRIPTS,
                GOAL,
                "delete_goal",
                "Clears the goal of a thread.",
            )
            .fails_with(&[409])
            .handled_by(goal::delete),
        )
        .routes(
            compact
                .body::<ThreadCompact>()
                .fails_with(&[409])
                .handled_by(threads::compact),
        )
        .routes(
            branch
                .body::<ThreadBranch>()
                .fails_with(&[409])
                .handled_by(threads::branch),
        )
        .routes(
            regenerate
                .body::<RegeneratePrepare>()
                .fails_with(&[409])
                .handled_by(runs::prepare_regenerate),
        )
        .routes(
            edit.body::<EditPrepare>()
                .fails_with(&[409])
                .handled_by(runs::prepare_edit),
        )
}

fn mcp_tasks() -> Routes {
    let list = read(
        TRANSCRIPTS,
        "/threads/{thread_id}/mcp-tasks",
        "list_mcp_tasks",
        "Lists the MCP tasks of a thread; always empty.",
    );
    let one = read(
        TRANSCRIPTS,
        "/threads/{thread_id}/mcp-tasks/{task_id}",
        "get_mcp_task",
        "Returns an MCP task; always 404.",
    );
    let cancel = send(
        TRANSCRIPTS,
        "/threads/{thread_id}/mcp-tasks/{task_id}/cancel",
        "cancel_mcp_task",
        "Cancels an MCP task; always 404.",
    );
    Routes::default()
        .routes(
            list.query("limit", number(1, 100, 100), "Maximum number of results.")
                .handled_by(mcp::tasks),
        )
        .routes(one.handled_by(mcp::task))
        .routes(cancel.handled_by(mcp::task))
}

fn files() -> Routes {
    const ARTIFACT: &str = "/threads/{thread_id}/artifacts/{*path}";
    let limits = read(
        FILES,
        "/threads/{thread_id}/uploads/limits",
        "get_upload_limits",
        "Returns the limits of uploads.",
    );
    let upload = send(
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
    let delete_upload = remove(
        FILES,
        "/threads/{thread_id}/uploads/{filename}",
        "delete_upload",
        "Deletes an uploaded file.",
    );
    let artifact = get(
        ARTIFACT,
        "get_artifact",
        "Returns a file of the agent, or a member of a `.skill` archive.",
    )
    .tag(FILES)
    .names();
    let edit = write(
        FILES,
        ARTIFACT,
        "put_artifact",
        "Saves an edited text file, unless it changed since it was opened.",
    );
    Routes::default()
        .routes(limits.handled_by(catalog::upload_limits))
        .routes(
            upload
                .idempotent()
                .form::<UploadForm>()
                .handled_by(uploads::post),
        )
        .routes(list.handled_by(uploads::list))
        .routes(delete_upload.handled_by(uploads::delete))
        .routes(
            artifact
                .query("download", flag(), "Sends the file as a download.")
                .header("range", "Range of bytes to return.")
                .returns_text(
                    "application/octet-stream",
                    "Content of the file, in its own media type.",
                )
                .fails_with(&[413])
                .handled_by(artifacts::get),
        )
        .routes(
            edit.body::<ArtifactEdit>()
                .fails_with(&[409, 412])
                .handled_by(artifacts::put),
        )
}

fn transcripts() -> Routes {
    const RUN_EVENTS: &str = "/threads/{thread_id}/runs/{run_id}/events";
    const CHANGES: &str = "/threads/{thread_id}/runs/{run_id}/workspace-changes";
    let page = read(
        TRANSCRIPTS,
        "/threads/{thread_id}/messages/page",
        "get_message_page",
        "Returns a page of a thread's messages.",
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
        "Returns the token usage and the cost of a thread.",
    );
    Routes::default()
        .routes(
            read(
                TRANSCRIPTS,
                "/threads/{thread_id}/messages",
                "list_messages",
                "Lists a thread's messages.",
            )
            .query("limit", number(1, 200, 50), "Maximum number of results.")
            .query(
                "after_seq",
                whole_number(0),
                "Only rows after this one, oldest first.",
            )
            .query("before_seq", whole_number(1), "Only rows before this one.")
            .handled_by(journal::messages),
        )
        .routes(
            page.query("limit", number(1, 200, 50), "Maximum number of results.")
                .query("before_seq", whole_number(1), "Only rows before this one.")
                .handled_by(journal::page),
        )
        .routes(
            of_run
                .query("limit", number(1, 200, 50), "Maximum number of results.")
                .query(
                    "after_seq",
                    whole_number(0),
                    "Only rows after this one, oldest first.",
                )
                .query("before_seq", whole_number(1), "Only rows before this one.")
                .handled_by(journal::run_messages),
        )
        .routes(
            read(
                TRANSCRIPTS,
                RUN_EVENTS,
                "list_run_events",
                "Lists a run's journal.",
            )
            .query("limit", number(1, 2000, 500), "Maximum number of results.")
            .query("event_types", texts(), "Only rows of these types.")
            .query("after_seq", whole_number(0), "Only rows after this one.")
            .query("task_id", text(), "Only rows of this subagent task.")
            .handled_by(journal::run_events),
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
                "Includes the list of files. Default `true`.",
            )
            .query(
                "include_diff",
                switch(),
                "Includes text diffs. Default `true`.",
            )
            .handled_by(journal::workspace_changes),
        )
        .routes(
            usage
                .query("include_active", flag(), "Includes active runs.")
                .handled_by(journal::token_usage),
        )
}

fn feedback_routes() -> Routes {
    const ALL: &str = "/threads/{thread_id}/runs/{run_id}/feedback";
    let one = remove(
        FEEDBACK,
        "/threads/{thread_id}/runs/{run_id}/feedback/{feedback_id}",
        "delete_one_feedback",
        "Deletes a feedback entry.",
    );
    let stats = read(
        FEEDBACK,
        "/threads/{thread_id}/runs/{run_id}/feedback/stats",
        "get_feedback_stats",
        "Returns the totals of the feedback on a run.",
    );
    Routes::default()
        .routes(
            read(
                FEEDBACK,
                ALL,
                "list_feedback",
                "Lists the feedback on a run.",
            )
            .handled_by(feedback::list),
        )
        .routes(
            write(
                FEEDBACK,
                ALL,
                "put_feedback",
                "Sets the caller's feedback on a run.",
            )
            .body::<FeedbackWrite>()
            .handled_by(feedback::put),
        )
        .routes(
            send(
                FEEDBACK,
                ALL,
                "post_feedback",
                "Adds feedback on a run or a message.",
            )
            .body::<FeedbackWrite>()
            .handled_by(feedback::post),
        )
        .routes(
            remove(
                FEEDBACK,
                ALL,
                "delete_feedback",
                "Deletes the caller's feedback on a run.",
            )
            .handled_by(feedback::delete),
        )
        .routes(stats.handled_by(feedback::stats))
        .routes(one.handled_by(feedback::delete))
}

/// A boolean that defaults to `true`.
fn switch() -> utoipa::openapi::schema::Schema {
    word(&[("true", ()), ("false", ())])
}
