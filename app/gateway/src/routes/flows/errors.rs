//! Errors of flow routes.

use deerflow_domain::flows::SaveError;
use deerflow_flow::finding::Finding;
use harness::skills::archive::{ArchiveError, PackError};
use serde_json::{Value, json};

use crate::error::{ApiError, capitalized};

/// The user has no flow of this id, and there is no system flow.
pub(super) fn not_found(slug: &str) -> ApiError {
    ApiError::NotFound(format!("Flow '{}' not found", short(slug)))
}

/// The flow has another content than `If-Match` names.
pub(super) fn changed(slug: &str) -> ApiError {
    ApiError::Changed(format!("Flow '{slug}' changed since it was read"))
}

/// Users cannot change system flows.
pub(super) fn read_only(slug: &str) -> ApiError {
    ApiError::Conflict(format!(
        "Flow '{slug}' is a system flow, which cannot be changed; create one with another id"
    ))
}

/// The flow is not valid; `file` names its document in an archive.
pub(super) fn invalid(findings: &[Finding]) -> ApiError {
    ApiError::InvalidAssistant(findings.iter().map(|finding| json!(finding)).collect())
}

/// Returns findings with the file that they belong to.
pub(super) fn findings_of_file(findings: &[Finding], file: &str) -> Vec<Value> {
    let with_file = |finding: &Finding| {
        let mut json = json!(finding);
        json["file"] = file.into();
        json
    };
    findings.iter().map(with_file).collect()
}

/// Shortens a text of a client for a message.
fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

impl From<SaveError> for ApiError {
    fn from(error: SaveError) -> Self {
        match error {
            SaveError::NotFound(slug) => not_found(&slug),
            SaveError::Changed(slug) => changed(&slug),
            SaveError::Taken(_) | SaveError::TooMany(_) => {
                Self::Conflict(capitalized(&error.to_string()))
            }
            SaveError::Store(error) => error.into(),
        }
    }
}

impl From<PackError> for ApiError {
    fn from(error: PackError) -> Self {
        Self::Internal(error.to_string())
    }
}

/// Returns the error of an archive that is not accepted.
pub(super) fn refused_archive(error: &ArchiveError) -> ApiError {
    let text = capitalized(&error.to_string());
    match error {
        ArchiveError::TooLarge | ArchiveError::LargeFiles { .. } => ApiError::FileTooLarge(text),
        _ => ApiError::Unprocessable(text),
    }
}
