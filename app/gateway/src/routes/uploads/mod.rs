//! `/threads/{t}/uploads`: what the user hands in. Files may come before their thread does; they lie under the caller's own
//! directory, whoever else has a thread of that id.

mod delete;
mod list;
mod markdown;
mod name;
mod post;

pub(crate) use delete::delete;
pub(crate) use list::list;
pub(crate) use post::post;

use harness::ids::ThreadId;
use harness::sandbox::VirtualPath;
use serde_json::{Value, json};

use crate::wire::percent_encoded;

/// Where uploads are, for agents.
const DIRECTORY: &str = "/mnt/user-data/uploads";

fn virtual_path(name: &str) -> String {
    format!("{DIRECTORY}/{name}")
}

fn artifact_url(thread: &ThreadId, name: &str) -> String {
    format!("/api/threads/{thread}/artifacts{DIRECTORY}/{}", percent_encoded(name))
}

/// A file as clients see it, before anything is known of its Markdown. Paths are virtual.
fn file_json(thread: &ThreadId, path: &VirtualPath, size: u64) -> Value {
    let name = path.file_name();
    json!({
        "filename": name,
        "size": size,
        "path": virtual_path(name),
        "virtual_path": virtual_path(name),
        "artifact_url": artifact_url(thread, name),
        "extension": null,
        "modified": null,
        "original_filename": null,
        "markdown_file": null,
        "markdown_path": null,
        "markdown_virtual_path": null,
        "markdown_artifact_url": null,
    })
}
