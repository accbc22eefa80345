//! `/threads/{t}/uploads`: what the user hands in. Files may come before their thread does; they lie under the caller's own
//! directory, whoever else has a thread of that id.

mod delete;
mod list;
mod name;
mod post;

pub(crate) use delete::delete;
pub(crate) use list::list;
pub(crate) use post::post;

use harness::ids::ThreadId;
use harness::sandbox::VirtualPath;
use serde_json::{Value, json};

use crate::wire::percent_encoded;

/// A file as clients see it. Paths are virtual; documents are not converted, so what says where the text is stays null.
fn file_json(thread: &ThreadId, path: &VirtualPath, size: u64) -> Value {
    let name = path.file_name();
    let directory = "/mnt/user-data/uploads";
    json!({
        "filename": name,
        "size": size,
        "path": format!("{directory}/{name}"),
        "virtual_path": format!("{directory}/{name}"),
        "artifact_url": format!("/api/threads/{thread}/artifacts{directory}/{}", percent_encoded(name)),
        "extension": null,
        "modified": null,
        "original_filename": null,
        "markdown_file": null,
        "markdown_path": null,
        "markdown_virtual_path": null,
        "markdown_artifact_url": null,
    })
}
