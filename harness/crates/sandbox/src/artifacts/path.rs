//! Paths and URLs of artifacts, and errors for missing ones.

use std::fmt::Display;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::error::ArtifactError;
use crate::sandbox::virtual_paths::USER_DATA;
use crate::sandbox::{FileError, FileFailure, PathError, VirtualPath};
use deerflow_core::ids::ThreadId;

/// Parses the path of an artifact. The first slash may be missing, as in a URL.
///
/// # Errors
/// [`ArtifactError::Traversal`], [`ArtifactError::OutsideUserData`], [`ArtifactError::Path`].
pub fn artifact_path(raw: &str) -> Result<VirtualPath, ArtifactError> {
    let absolute = format!("/{}", raw.trim_start_matches('/'));
    if absolute.split('/').any(|segment| segment == "..") {
        return Err(ArtifactError::Traversal);
    }
    VirtualPath::parse(&absolute).map_err(|error| match error {
        PathError::OutsideRoots { .. } if !absolute.starts_with(USER_DATA) => {
            ArtifactError::OutsideUserData
        }
        PathError::ParentSegment { .. } => ArtifactError::Traversal,
        other => ArtifactError::Path(other),
    })
}

/// Converts a file error to the reason why the artifact is not available.
pub fn artifact_error(error: FileError, path: &VirtualPath) -> ArtifactError {
    match error.fault() {
        Some(FileFailure::NotFound | FileFailure::NotDirectory) => ArtifactError::not_found(path),
        Some(FileFailure::IsDirectory | FileFailure::NotRegular) => {
            ArtifactError::NotAFile(url_path(path))
        }
        Some(FileFailure::Symlink | FileFailure::Permission) => ArtifactError::Traversal,
        _ => error.into(),
    }
}

/// Path as used in a URL, without its first slash.
pub(super) fn url_path(path: &VirtualPath) -> String {
    path.to_string().trim_start_matches('/').to_owned()
}

/// Returns the URL of an artifact in the gateway.
pub fn artifact_url(thread: &ThreadId, path: &VirtualPath) -> String {
    let segments: String = url_path(path)
        .split('/')
        .map(|name| format!("/{}", percent_encoded(name)))
        .collect();
    format!("/api/threads/{thread}/artifacts{segments}")
}

/// Characters that are not escaped in URLs (RFC 3986, 2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'.')
    .remove(b'_')
    .remove(b'-')
    .remove(b'~');

/// Formats a name as one URL segment: all characters except unreserved ones are escaped.
pub fn percent_encoded(name: &str) -> impl Display {
    utf8_percent_encode(name, UNRESERVED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifact_path_accepts_user_data_only() {
        let read = |raw: &str| {
            artifact_path(raw)
                .map(|path| path.to_string())
                .map_err(|error| error.to_string())
        };
        for raw in [
            "mnt/user-data/outputs/a b.txt",
            "/mnt/user-data/outputs/a b.txt",
            "//mnt/user-data/outputs/a b.txt",
        ] {
            assert_eq!(read(raw).unwrap(), "/mnt/user-data/outputs/a b.txt");
        }
        for raw in [
            "mnt/user-data/../../etc/passwd",
            "../x",
            "mnt/user-data/outputs/..",
        ] {
            assert!(
                matches!(artifact_path(raw), Err(ArtifactError::Traversal)),
                "{raw}"
            );
        }
        for raw in ["etc/passwd", "mnt/skills/public/x", "", "/"] {
            assert!(
                matches!(artifact_path(raw), Err(ArtifactError::OutsideUserData)),
                "{raw}"
            );
        }
        assert!(matches!(
            artifact_path("mnt/user-data/outputs/a\u{0}b"),
            Err(ArtifactError::Path(_))
        ));
    }

    #[test]
    fn artifact_url_escapes_names() {
        let path = VirtualPath::parse("/mnt/user-data/outputs/ü/a b#.txt").unwrap();
        let url = artifact_url(&ThreadId::parse("t").unwrap(), &path);
        assert_eq!(
            url,
            "/api/threads/t/artifacts/mnt/user-data/outputs/%C3%BC/a%20b%23.txt"
        );
    }
}
