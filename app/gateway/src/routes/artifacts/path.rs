//! The path in the URL as a virtual path, and what is said when there is no such file.

use harness::sandbox::virtual_paths::USER_DATA;
use harness::sandbox::{Fault, FileError, PathError, VirtualPath};

use crate::error::ApiError;

/// Reads the path that follows `artifacts/`.
pub(super) fn virtual_path(raw: &str) -> Result<VirtualPath, ApiError> {
    let absolute = format!("/{}", raw.trim_start_matches('/'));
    if absolute.split('/').any(|segment| segment == "..") {
        return Err(outside());
    }
    VirtualPath::parse(&absolute).map_err(|error| match error {
        PathError::OutsideRoots { .. } if !absolute.starts_with(USER_DATA) => {
            ApiError::BadRequest(format!("Path must start with {USER_DATA}"))
        }
        PathError::ParentSegment { .. } => outside(),
        other => ApiError::BadRequest(other.to_string()),
    })
}

/// Why a file cannot be had.
pub(super) fn refused(error: FileError, path: &VirtualPath) -> ApiError {
    match error.fault() {
        Some(Fault::NotFound | Fault::NotDirectory) => not_found(path),
        Some(Fault::IsDirectory | Fault::NotRegular) => ApiError::BadRequest(format!("Path is not a file: {}", shown(path))),
        Some(Fault::Symlink | Fault::Permission) => outside(),
        _ => error.into(),
    }
}

/// No such file.
pub(super) fn not_found(path: &VirtualPath) -> ApiError {
    ApiError::NotFound(format!("Artifact not found: {}", shown(path)))
}

fn outside() -> ApiError {
    ApiError::Forbidden("Access denied: path traversal detected".to_owned())
}

/// The path as it stands in the URL.
fn shown(path: &VirtualPath) -> String {
    path.to_string().trim_start_matches('/').to_owned()
}
