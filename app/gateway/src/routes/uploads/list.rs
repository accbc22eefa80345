//! `GET .../uploads/list`.

use std::time::SystemTime;

use axum::Json;
use axum::extract::State;
use harness::runtime::actor_context::effective_user_id;
use harness::sandbox::safe_fs::NodeKind;
use harness::sandbox::{Root, VirtualPath};
use serde_json::{Value, json};

use super::file_json;
use crate::extract::Ids;
use crate::routes::{Answer, App};

pub(crate) async fn list(State(state): App, ids: Ids) -> Answer {
    let thread = ids.thread()?;
    let files = state.files.thread(&effective_user_id(), &thread);
    let items = files.read_dir(&VirtualPath::of_root(Root::Uploads)).await?;
    let files: Vec<Value> = items
        .iter()
        .filter(|item| item.stat.kind == NodeKind::File)
        .map(|item| {
            let mut file = file_json(&thread, &item.path, item.stat.bytes);
            file["extension"] = extension(item.path.file_name()).into();
            file["modified"] = item.stat.modified.map(seconds).into();
            file
        })
        .collect();
    Ok(Json(json!({ "count": files.len(), "files": files })))
}

/// The ending with its dot; empty when there is none.
fn extension(name: &str) -> &str {
    name.rfind('.').filter(|at| *at > 0).map_or("", |at| &name[at..])
}

fn seconds(at: SystemTime) -> f64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map(|since| since.as_secs_f64()).unwrap_or_default()
}
