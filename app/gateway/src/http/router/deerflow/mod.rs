//! Routes of DeerFlow's dialect only, for its web UI.

mod memory;
mod settings;
mod threads;

use crate::openapi::{Operation, Routes, delete, get, openapi, patch, post, put};

/// Group of routes that describe the installation and its settings.
const SETTINGS: &str = "Settings";
/// Group of routes about skills.
const SKILLS: &str = "Skills";
/// Group of routes about agents created by users.
const AGENTS: &str = "Agents";
/// Group of routes about user memory.
const MEMORY: &str = "Memory";
/// Group of routes about files of threads.
const FILES: &str = "Files";
/// Group of routes that read the history of a thread.
const TRANSCRIPTS: &str = "Transcripts";
/// Group of routes about feedback on runs.
const FEEDBACK: &str = "Feedback";

/// Groups with their descriptions, in display order.
pub(crate) const GROUPS: &[(&str, &str)] = &[
    (
        SETTINGS,
        "The installation, its models and MCP servers, and the totals of the caller's runs.",
    ),
    (SKILLS, "Skills of agents."),
    (AGENTS, "Custom agents and the user profile."),
    (MEMORY, "Memory of the user."),
    (FILES, "Uploads and artifacts of threads."),
    (
        TRANSCRIPTS,
        "Messages and journal of a thread, its goal, and auxiliary model features.",
    ),
    (FEEDBACK, "Ratings of runs and messages."),
];

/// Builds the routes.
pub(super) fn routes() -> Routes {
    let document = get(
        "/openapi.json",
        "get_whole_openapi",
        "Returns the OpenAPI document of both dialects.",
    )
    .tag(SETTINGS);
    settings::routes()
        .merge(memory::routes())
        .merge(threads::routes())
        .routes(
            document
                .returns("Document", "An OpenAPI document.")
                .fails_with(&[404])
                .handled_by(openapi),
        )
}

/// A read operation with a JSON response.
fn read(tag: &str, path: &'static str, id: &str, summary: &str) -> Operation {
    with_json_response(get(path, id, summary), tag)
}

/// A `POST` operation with a JSON response.
fn send(tag: &str, path: &'static str, id: &str, summary: &str) -> Operation {
    with_json_response(post(path, id, summary), tag)
}

/// A replacing operation with a JSON response.
fn write(tag: &str, path: &'static str, id: &str, summary: &str) -> Operation {
    with_json_response(put(path, id, summary), tag)
}

/// A partial update with a JSON response.
fn change(tag: &str, path: &'static str, id: &str, summary: &str) -> Operation {
    with_json_response(patch(path, id, summary), tag)
}

/// A removing operation with a JSON response.
fn remove(tag: &str, path: &'static str, id: &str, summary: &str) -> Operation {
    with_json_response(delete(path, id, summary), tag)
}

fn with_json_response(operation: Operation, tag: &str) -> Operation {
    operation
        .tag(tag)
        .names()
        .returns("DeerFlowAnswer", "The result.")
}
