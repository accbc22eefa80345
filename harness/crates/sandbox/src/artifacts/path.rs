//! Paths of artifacts, and errors for missing ones.

use super::error::ArtifactError;
use super::url::url_path;
use crate::sandbox::virtual_paths::USER_DATA;
use crate::sandbox::{FileError, FileFailure, PathError, VirtualPath};

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
}
