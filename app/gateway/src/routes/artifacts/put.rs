//! `PUT`: saves an edited text, unless the file changed since it was opened.

use axum::Json;
use axum::extract::State;
use harness::artifacts::{ArtifactError, artifact_error, artifact_path};
use harness::runtime::actor_context::effective_user_id;
use harness::runtime::runs::ThreadStatus;
use harness::sandbox::pending_file::Durability;
use harness::sandbox::{FileError, FileFailure, Root, VirtualPath};
use serde_json::json;

use super::hash::hash;
use crate::error::ApiError;
use crate::extract::{Body, Ids};
use crate::queries::threads::require_thread;
use crate::requests::bodies::ArtifactEdit;
use crate::routes::{App, JsonResult};

/// Maximum size of an edited text, before and after the edit.
const MAX_EDITABLE_BYTES: u64 = 2 * 1024 * 1024;

/// Pattern of a hash.
const HASH_PATTERN: &str = "^[0-9a-f]{64}$";

pub(crate) async fn put(State(state): App, ids: Ids, body: Body<ArtifactEdit>) -> JsonResult {
    let thread = ids.thread()?;
    let (body, mut issues) = body.parts();
    let sent = body.expected_sha256.as_deref();
    if let Some(expected) = sent.filter(|text| !is_hash(text)) {
        let message = format!("String should match pattern '{HASH_PATTERN}'");
        let _none: Option<()> = issues.refuse(
            "string_pattern_mismatch",
            "expected_sha256",
            message,
            &expected.into(),
        );
    }
    issues.finish()?;
    let (content, expected) = (body.content, body.expected_sha256.unwrap_or_default());
    state.observability.health.require_space()?;
    let record = require_thread(&state, &thread).await?;
    let path = editable(artifact_path(ids.text("path"))?)?;
    if record.status == ThreadStatus::Busy {
        return Err(ApiError::Conflict(
            "Thread has a run in flight. Save after the run finishes.".to_owned(),
        ));
    }
    let files = state
        .thread_services
        .files
        .thread(&effective_user_id(), &thread);
    let before = files
        .stat(&path)
        .await
        .map_err(|error| not_edited(error, &path))?
        .ok_or_else(|| ArtifactError::not_found(&path))?;
    let size = content.len() as u64;
    if before.bytes.max(size) > MAX_EDITABLE_BYTES {
        return Err(too_large());
    }
    let sha256 = hash(&content);
    let saved = files
        .replace_if(&path, content, Durability::Synced, move |present| {
            hash(present) == expected
        })
        .await;
    match saved.map_err(|error| not_edited(error, &path))? {
        true => Ok(Json(
            json!({ "path": path.to_string(), "sha256": sha256, "size": size }),
        )),
        false => Err(ApiError::Changed(
            "Artifact changed since it was opened".to_owned(),
        )),
    }
}

/// Accepts only output files of the agent, and no members of archives.
fn editable(path: VirtualPath) -> Result<VirtualPath, ApiError> {
    if path.root() != Root::Outputs {
        return Err(ApiError::BadRequest(
            "Only files under /mnt/user-data/outputs can be edited".to_owned(),
        ));
    }
    let in_archive = path
        .relative()
        .split_last()
        .is_some_and(|(parent, _)| parent.components().any(|name| name.ends_with(".skill")));
    if in_archive {
        Err(not_editable())
    } else {
        Ok(path)
    }
}

/// Converts a file error to the error of an edit.
fn not_edited(error: FileError, path: &VirtualPath) -> ApiError {
    match error.fault() {
        Some(FileFailure::NotUtf8 | FileFailure::Symlink | FileFailure::HardLinked) => {
            not_editable()
        }
        Some(FileFailure::TooLarge { .. }) => too_large(),
        _ => artifact_error(error, path).into(),
    }
}

fn not_editable() -> ApiError {
    ApiError::UnsupportedFile("Only regular UTF-8 text files can be edited".to_owned())
}

fn too_large() -> ApiError {
    ApiError::FileTooLarge(format!(
        "Only files of up to {MAX_EDITABLE_BYTES} bytes can be edited"
    ))
}

fn is_hash(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}
