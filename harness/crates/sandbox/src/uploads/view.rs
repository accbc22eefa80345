//! Uploads as seen by clients.

use serde::{Deserialize, Serialize};

use crate::artifacts::artifact_url;
use crate::sandbox::VirtualPath;
use deerflow_core::ids::ThreadId;

/// An uploaded file. Unknown or inapplicable fields are null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UploadedFile {
    /// Stored name.
    pub filename: String,
    /// Length in bytes.
    pub size: u64,
    /// Virtual path; the embedded client returns the host path instead.
    pub path: String,
    /// Virtual path for agents.
    pub virtual_path: String,
    /// URL of the file in the gateway.
    pub artifact_url: String,
    /// File extension with its dot; only in lists.
    pub extension: Option<String>,
    /// Time of the last modification, in seconds since 1970; only in lists.
    pub modified: Option<f64>,
    /// Name sent by the client, if it was already in use.
    pub original_filename: Option<String>,
    /// Name of the converted Markdown file.
    pub markdown_file: Option<String>,
    /// Path of the Markdown file, as `path`.
    pub markdown_path: Option<String>,
    /// Virtual path of the Markdown file.
    pub markdown_virtual_path: Option<String>,
    /// URL of the Markdown file in the gateway.
    pub markdown_artifact_url: Option<String>,
}

impl UploadedFile {
    /// Creates the view of a file without Markdown.
    pub(super) fn of(thread: &ThreadId, path: &VirtualPath, size: u64) -> Self {
        Self {
            filename: path.file_name().to_owned(),
            size,
            path: path.to_string(),
            virtual_path: path.to_string(),
            artifact_url: artifact_url(thread, path),
            extension: None,
            modified: None,
            original_filename: None,
            markdown_file: None,
            markdown_path: None,
            markdown_virtual_path: None,
            markdown_artifact_url: None,
        }
    }
}

/// Result of an upload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Uploaded {
    /// `true` if any file was stored.
    pub success: bool,
    /// Human-readable result with the number of files.
    pub message: String,
    /// Stored files.
    pub files: Vec<UploadedFile>,
    /// Names of skipped files, as sent by the client.
    pub skipped_files: Vec<String>,
}

/// Uploads of a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UploadList {
    /// Number of files.
    pub count: usize,
    /// The files.
    pub files: Vec<UploadedFile>,
}

/// Result of a removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadRemoved {
    /// Always true: a failure is an error response.
    pub success: bool,
    /// Human-readable result with the name of the file.
    pub message: String,
}
