//! Under which name an uploaded file is kept. Pure.

use std::collections::HashSet;

use super::error::UploadError;
use crate::sandbox::ignore::is_unfinished;
use crate::sandbox::virtual_paths::RelativePath;
use crate::sandbox::{Root, VirtualPath};

/// The place of a file that came as `raw`: its last part only. `None` for a name that no upload can have.
pub(super) fn place_of(raw: &str) -> Option<VirtualPath> {
    let name = raw
        .rsplit('/')
        .next()
        .filter(|name| !name.is_empty() && *name != ".." && !is_unfinished(name))?;
    RelativePath::default()
        .join(name)
        .ok()
        .map(|relative| VirtualPath::new(Root::Uploads, relative))
}

/// The place of an upload that has exactly this name.
///
/// # Errors
/// [`UploadError::InvalidName`]: a name with a way in it is a mistake here, and is not cut down to another file's name.
pub fn place_named(name: &str) -> Result<VirtualPath, UploadError> {
    place_of(name)
        .filter(|place| place.file_name() == name)
        .ok_or(UploadError::InvalidName)
}

/// The names of one request, so that two files of the same name are both kept.
#[derive(Debug, Default)]
pub(super) struct Names(HashSet<String>);

impl Names {
    /// Takes the name of a place, unless a file of the request has it.
    pub(super) fn take(&mut self, place: &VirtualPath) -> bool {
        self.0.insert(place.file_name().to_owned())
    }

    /// The place itself, or the first of `name_1.ext`, `name_2.ext` and so on that is not taken.
    pub(super) fn claim(&mut self, place: VirtualPath) -> Option<VirtualPath> {
        if self.0.insert(place.file_name().to_owned()) {
            return Some(place);
        }
        let name = place.file_name().to_owned();
        let (stem, ending) = match name.rfind('.').filter(|at| *at > 0) {
            Some(at) => name.split_at(at),
            None => (name.as_str(), ""),
        };
        let free = (1..)
            .map(|number| format!("{stem}_{number}{ending}"))
            .find(|name| !self.0.contains(name))?;
        self.0.insert(free.clone());
        place_of(&free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_part_of_a_plain_name_is_kept() {
        for (raw, kept) in [
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
                place_of(raw).as_ref().map(VirtualPath::file_name),
                kept,
                "{raw:?}"
            );
        }
        assert_eq!(place_of(&"x".repeat(256)), None);
    }

    #[test]
    fn a_file_that_is_there_is_named_without_a_way() {
        assert_eq!(place_named("a b.txt").unwrap().file_name(), "a b.txt");
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
                matches!(place_named(wrong), Err(UploadError::InvalidName)),
                "{wrong}"
            );
        }
    }

    #[test]
    fn names_that_come_again_get_a_number() {
        let mut names = Names::default();
        let mut claim = |raw: &str| {
            names
                .claim(place_of(raw)?)
                .map(|place| place.file_name().to_owned())
        };
        let kept = ["a.txt", "a.txt", "a_1.txt", "a.txt", "b", "b", ".rc", ".rc"]
            .map(|raw| claim(raw).unwrap_or_default());
        assert_eq!(
            kept,
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
        assert_eq!(
            claim(&"y".repeat(255)),
            None,
            "there is no room for a number"
        );
    }
}
