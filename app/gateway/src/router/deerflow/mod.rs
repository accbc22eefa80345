//! Routes of DeerFlow's dialect only: what its web UI asks for besides.

mod settings;
mod threads;

use crate::openapi::{Operation, Routes, delete, get, openapi, patch, post, put};

/// Group of routes that describe the installation and its settings.
const SETTINGS: &str = "Settings";
/// Group of routes about skills.
const SKILLS: &str = "Skills";
/// Group of routes about agents that users make.
const AGENTS: &str = "Agents";
/// Group of routes about what is remembered of users.
const MEMORY: &str = "Memory";
/// Group of routes about files of threads.
const FILES: &str = "Files";
/// Group of routes that read what happened on a thread.
const TRANSCRIPTS: &str = "Transcripts";
/// Group of routes about feedback on runs.
const FEEDBACK: &str = "Feedback";

/// Groups of these routes with their descriptions, in the order in which they are shown.
pub(crate) const GROUPS: &[(&str, &str)] = &[
    (
        SETTINGS,
        "The installation, its models and MCP servers, and what the caller's runs add up to.",
    ),
    (SKILLS, "What agents know how to do."),
    (AGENTS, "Agents that users make."),
    (MEMORY, "What is remembered of the user."),
    (FILES, "Uploads and artifacts of threads."),
    (
        TRANSCRIPTS,
        "What happened on a thread, goals, and aids around it.",
    ),
    (FEEDBACK, "Thumbs up and down."),
];

/// All of them.
pub(super) fn routes() -> Routes {
    let document = get(
        "/openapi.json",
        "get_whole_openapi",
        "Describes every route of both dialects.",
    )
    .tag(SETTINGS);
    settings::routes().merge(threads::routes()).routes(
        document
            .answers("Document", "An OpenAPI document.")
            .refuses(&[404])
            .by(openapi),
    )
}

/// A route that reads, and answers with JSON.
fn read(tag: &str, path: &'static str, id: &str, summary: &str) -> Operation {
    answered(get(path, id, summary), tag)
}

/// A route that asks or makes, and answers with JSON.
fn ask(tag: &str, path: &'static str, id: &str, summary: &str) -> Operation {
    answered(post(path, id, summary), tag)
}

/// A route that writes whole, and answers with JSON.
fn write(tag: &str, path: &'static str, id: &str, summary: &str) -> Operation {
    answered(put(path, id, summary), tag)
}

/// A route that changes parts, and answers with JSON.
fn change(tag: &str, path: &'static str, id: &str, summary: &str) -> Operation {
    answered(patch(path, id, summary), tag)
}

/// A route that removes, and answers with JSON.
fn remove(tag: &str, path: &'static str, id: &str, summary: &str) -> Operation {
    answered(delete(path, id, summary), tag)
}

fn answered(operation: Operation, tag: &str) -> Operation {
    operation
        .tag(tag)
        .names()
        .answers("DeerFlowAnswer", "The answer.")
}
