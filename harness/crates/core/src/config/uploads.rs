//! `uploads`: limits of uploads.

use serde::Deserialize;

use super::check::Checker;

/// Limits of uploads.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct UploadsConfig {
    /// Maximum number of files in one upload.
    pub max_files: usize,
    /// Maximum size of a file, in bytes.
    pub max_file_size: u64,
    /// Maximum total size of an upload, in bytes.
    pub max_total_size: u64,
    /// Converts documents to Markdown.
    pub auto_convert_documents: bool,
    /// Has no effect: there is only one converter.
    pub pdf_converter: String,
}

impl Default for UploadsConfig {
    fn default() -> Self {
        Self {
            max_files: 10,
            max_file_size: 50 * 1024 * 1024,
            max_total_size: 100 * 1024 * 1024,
            auto_convert_documents: false,
            pdf_converter: "auto".to_owned(),
        }
    }
}

impl UploadsConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.within("max_files", self.max_files, 1..);
        check.within("max_file_size", self.max_file_size, 1..);
        check.within("max_total_size", self.max_total_size, 1..);
    }
}
