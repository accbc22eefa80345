//! Paths of artifacts, and what is said when there is nothing at one.

use std::fmt::Display;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::error::ArtifactError;
use crate::ids::ThreadId;
use crate::sandbox::virtual_paths::USER_DATA;
use crate::sandbox::{Fault, FileError, PathError, VirtualPath};

/// Reads the path of an artifact, which may come without its first slash, as in a URL.
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

/// Why a file cannot be had.
pub fn refused(error: FileError, path: &VirtualPath) -> ArtifactError {
    match error.fault() {
        Some(Fault::NotFound | Fault::NotDirectory) => ArtifactError::not_found(path),
        Some(Fault::IsDirectory | Fault::NotRegular) => ArtifactError::NotAFile(shown(path)),
        Some(Fault::Symlink | Fault::Permission) => ArtifactError::Traversal,
        _ => error.into(),
    }
}

/// The path as it stands in a URL.
pub(super) fn shown(path: &VirtualPath) -> String {
    path.to_string().trim_start_matches('/').to_owned()
}

/// Where the gateway has an artifact.
pub fn artifact_url(thread: &ThreadId, path: &VirtualPath) -> String {
    let segments: String = shown(path)
        .split('/')
        .map(|name| format!("/{}", percent_encoded(name)))
        .collect();
    format!("/api/threads/{thread}/artifacts{segments}")
}

/// What stands in a URL as it is (RFC 3986, 2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'.')
    .remove(b'_')
    .remove(b'-')
    .remove(b'~');

/// A name as one segment of a URL, everything but unreserved characters escaped.
pub fn percent_encoded(name: &str) -> impl Display {
    utf8_percent_encode(name, UNRESERVED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_user_data_are_artifacts() {
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
    fn urls_keep_the_way_and_escape_the_names() {
        let path = VirtualPath::parse("/mnt/user-data/outputs/ü/a b#.txt").unwrap();
        let url = artifact_url(&ThreadId::parse("t").unwrap(), &path);
        assert_eq!(
            url,
            "/api/threads/t/artifacts/mnt/user-data/outputs/%C3%BC/a%20b%23.txt"
        );
    }
}
