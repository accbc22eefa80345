//! File names of uploads. Pure.

use std::collections::HashSet;

use super::error::UploadError;
use crate::sandbox::ignore::is_unfinished;
use crate::sandbox::virtual_paths::RelativePath;
use crate::sandbox::{Root, VirtualPath};

/// Returns the path for an upload with the client's name `raw`, of which only the last segment is
/// used. `None` if the name is invalid.
pub(super) fn path_of(raw: &str) -> Option<VirtualPath> {
    let name = raw
        .rsplit('/')
        .next()
        .filter(|name| !name.is_empty() && *name != ".." && !is_unfinished(name))?;
    RelativePath::default()
        .join(name)
        .ok()
        .map(|relative| VirtualPath::new(Root::Uploads, relative))
}

/// Returns the path of the upload with exactly this name.
///
/// # Errors
/// [`UploadError::InvalidName`]: a name that contains a path is rejected, not shortened to the name
/// of another file.
pub fn upload_path(name: &str) -> Result<VirtualPath, UploadError> {
    path_of(name)
        .filter(|path| path.file_name() == name)
        .ok_or(UploadError::InvalidName)
}

/// Names used within one request, so that files with the same name do not overwrite each other.
#[derive(Debug, Default)]
pub(super) struct Names(HashSet<String>);

impl Names {
    /// Reserves the name of a path. Returns `false` if a file of the request uses it.
    pub(super) fn reserve(&mut self, path: &VirtualPath) -> bool {
        self.0.insert(path.file_name().to_owned())
    }

    /// Reserves the path itself, or the first free one of `name_1.ext`, `name_2.ext` and so on.
    pub(super) fn claim(&mut self, path: VirtualPath) -> Option<VirtualPath> {
        if self.0.insert(path.file_name().to_owned()) {
            return Some(path);
        }
        let name = path.file_name().to_owned();
        let (stem, ending) = match name.rfind('.').filter(|at| *at > 0) {
            Some(at) => name.split_at(at),
            None => (name.as_str(), ""),
        };
        let free = (1..)
            .map(|number| format!("{stem}_{number}{ending}"))
            .find(|name| !self.0.contains(name))?;
        self.0.insert(free.clone());
        path_of(&free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_uses_last_segment_only() {
        for (raw, expected) in [
            ("a b.txt", Some("a b.txt")),
            ("../../x.txt", Some("x.txt")),
            ("/etc/passwd", Some("passwd")),
            ("ü.md", Some("ü.md")),
            (".hidden", Some(".hidden")),
            ("", None),
            ("dir/", None),
            (".", None),
            ("..", None),
            ("a\\b", None),
            ("a\u{0}b", None),
            (".upload-1-2.part", None),
        ] {
            assert_eq!(
                path_of(raw).as_ref().map(VirtualPath::file_name),
                expected,
                "{raw:?}"
            );
        }
        assert_eq!(path_of(&"x".repeat(256)), None);
    }

    #[test]
    fn upload_path_rejects_paths() {
        assert_eq!(upload_path("a b.txt").unwrap().file_name(), "a b.txt");
        for wrong in [
            "../a.txt",
            "/etc/passwd",
            "a/",
            "..",
            ".",
            "",
            "a\\b",
            "x/../a.txt",
        ] {
            assert!(
                matches!(upload_path(wrong), Err(UploadError::InvalidName)),
                "{wrong}"
            );
        }
    }

    #[test]
    fn repeated_names_get_a_number() {
        let mut names = Names::default();
        let mut claim = |raw: &str| {
            names
                .claim(path_of(raw)?)
                .map(|path| path.file_name().to_owned())
        };
        let expected = ["a.txt", "a.txt", "a_1.txt", "a.txt", "b", "b", ".rc", ".rc"]
            .map(|raw| claim(raw).unwrap_or_default());
        assert_eq!(
            expected,
            [
                "a.txt",
                "a_1.txt",
                "a_1_1.txt",
                "a_2.txt",
                "b",
                "b_1",
                ".rc",
                ".rc_1"
            ]
        );
        assert_eq!(claim(&"y".repeat(255)).map(|name| name.len()), Some(255));
        assert_eq!(claim(&"y".repeat(255)), None, "no space left for a number");
    }
}
