//! Uploads as clients see them.

use serde::{Deserialize, Serialize};

use crate::artifacts::artifact_url;
use crate::ids::ThreadId;
use crate::sandbox::VirtualPath;

/// One file. What is not known, or not asked for, is null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UploadedFile {
    /// The name it has.
    pub filename: String,
    /// Its length in bytes.
    pub size: u64,
    /// Where it lies: for agents, or, told by the embedded client, on the host.
    pub path: String,
    /// Where it lies for agents.
    pub virtual_path: String,
    /// Where the gateway has it.
    pub artifact_url: String,
    /// The ending of its name with the dot, in lists.
    pub extension: Option<String>,
    /// When it was changed, in seconds since 1970, in lists.
    pub modified: Option<f64>,
    /// The name it came with, where that was taken.
    pub original_filename: Option<String>,
    /// The name of the Markdown that was made of it.
    pub markdown_file: Option<String>,
    /// Where that lies, as `path`.
    pub markdown_path: Option<String>,
    /// Where that lies for agents.
    pub markdown_virtual_path: Option<String>,
    /// Where the gateway has that.
    pub markdown_artifact_url: Option<String>,
}

impl UploadedFile {
    /// A file before anything is known of its Markdown.
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

/// What an upload came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Uploaded {
    /// Whether any file was taken in.
    pub success: bool,
    /// How many were.
    pub message: String,
    /// Those that were.
    pub files: Vec<UploadedFile>,
    /// The names of those that cannot be kept, as they came.
    pub skipped_files: Vec<String>,
}

/// The files that a thread has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UploadList {
    /// How many.
    pub count: usize,
    /// Each of them.
    pub files: Vec<UploadedFile>,
}

/// What a removal came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadRemoved {
    /// Always true: what fails is an error.
    pub success: bool,
    /// Which file is gone.
    pub message: String,
}
