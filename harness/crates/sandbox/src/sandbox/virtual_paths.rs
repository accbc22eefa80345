//! Virtual paths: the only names by which models, uploads and artifact requests can refer to a
//! file.

use std::fmt;

use super::path_error::quoted;

pub use super::path_error::{MAX_COMPONENT_BYTES, MAX_PATH_BYTES, PathError};
pub use super::roots::{ACP_WORKSPACE, Root, SKILLS, USER_DATA};

/// A file or directory beneath one of the [`Root`]s; the root itself if `relative` is empty.
///
/// The text form is canonical: parsing the output of [`Display`](fmt::Display) returns the same
/// value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualPath {
    root: Root,
    relative: RelativePath,
}

impl VirtualPath {
    /// Parses an absolute virtual path of a file or directory of a thread.
    ///
    /// Empty and `.` segments are dropped, so a doubled or final `/` is accepted. `..` is rejected
    /// instead of resolved: its meaning would depend on links on the disk.
    ///
    /// # Errors
    /// A [`PathError`] with a text for the model that names the accepted paths.
    pub fn parse(raw: &str) -> Result<Self, PathError> {
        let segments = segments_of(raw)?;
        let ["mnt", "user-data", root, relative @ ..] = segments.as_slice() else {
            return Err(PathError::OutsideRoots { path: quoted(raw) });
        };
        let Some(root) = Root::from_dir_name(root) else {
            return Err(PathError::OutsideRoots { path: quoted(raw) });
        };
        let relative = RelativePath::from_segments(relative.iter().copied())?;
        Ok(Self { root, relative })
    }

    /// As [`parse`](Self::parse), but also accepts paths of skills and of external agents. For
    /// read-only operations.
    ///
    /// # Errors
    /// As there.
    pub fn parse_readable(raw: &str) -> Result<Self, PathError> {
        let segments = segments_of(raw)?;
        let (root, relative) = match segments.as_slice() {
            ["mnt", "skills", relative @ ..] => (Root::Skills, relative),
            ["mnt", "acp-workspace", relative @ ..] => (Root::AcpWorkspace, relative),
            _ => return Self::parse(raw),
        };
        Ok(Self {
            root,
            relative: RelativePath::from_segments(relative.iter().copied())?,
        })
    }

    /// Parses any absolute path. The caller checks that it is inside a mount.
    pub(super) fn parse_mounted(raw: &str) -> Result<Self, PathError> {
        Ok(Self {
            root: Root::Mounts,
            relative: RelativePath::from_segments(segments_of(raw)?.into_iter())?,
        })
    }

    /// Returns the path of a root.
    pub fn of_root(root: Root) -> Self {
        Self {
            root,
            relative: RelativePath::default(),
        }
    }

    /// Returns the path of `relative` beneath `root`.
    pub fn new(root: Root, relative: RelativePath) -> Self {
        Self { root, relative }
    }

    /// Root of the path.
    pub fn root(&self) -> Root {
        self.root
    }

    /// Path relative to the root; empty for the root itself.
    pub fn relative(&self) -> &RelativePath {
        &self.relative
    }

    /// Last name of the path, or the name of the root.
    pub fn file_name(&self) -> &str {
        self.relative
            .split_last()
            .map_or(self.root.dir_name(), |(_, name)| name)
    }
}

impl fmt::Display for VirtualPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.root {
            Root::Skills => f.write_str(SKILLS)?,
            Root::AcpWorkspace => f.write_str(ACP_WORKSPACE)?,
            Root::Mounts => {}
            of_thread => write!(f, "{USER_DATA}/{}", of_thread.dir_name())?,
        }
        if !self.relative.is_empty() {
            write!(f, "/{}", self.relative.as_str())?;
        }
        Ok(())
    }
}

impl std::str::FromStr for VirtualPath {
    type Err = PathError;

    fn from_str(raw: &str) -> Result<Self, PathError> {
        Self::parse(raw)
    }
}

/// Names joined by single `/`; no name is empty, `.`, `..`, too long or contains a rejected
/// character.
///
/// [`safe_fs`](super::safe_fs) accepts only this type, so a path that leaves its root cannot be
/// expressed.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelativePath(String);

impl RelativePath {
    /// Parses a relative path by the rules of [`VirtualPath::parse`].
    ///
    /// # Errors
    /// If it is absolute or has an invalid name.
    pub fn parse(raw: &str) -> Result<Self, PathError> {
        if raw.starts_with('/') {
            return Err(PathError::OutsideRoots { path: quoted(raw) });
        }
        Self::from_segments(significant_segments(raw))
    }

    fn from_segments<'a>(segments: impl Iterator<Item = &'a str>) -> Result<Self, PathError> {
        let mut joined = String::new();
        for segment in segments {
            check_component(segment)?;
            if !joined.is_empty() {
                joined.push('/');
            }
            joined.push_str(segment);
        }
        if joined.len() > MAX_PATH_BYTES {
            return Err(PathError::TooLong {
                bytes: joined.len(),
            });
        }
        Ok(Self(joined))
    }

    /// Joins names, or paths of names, that are known to be valid.
    pub(crate) fn of_plain_names(names: &[&str]) -> Self {
        let joined = names.join("/");
        debug_assert_eq!(
            Self::parse(&joined).as_ref().map(Self::as_str),
            Ok(joined.as_str())
        );
        Self(joined)
    }

    /// Returns this path with one more name appended.
    ///
    /// # Errors
    /// If `name` is not a plain name or the result is too long.
    pub fn join(&self, name: &str) -> Result<Self, PathError> {
        if name.is_empty() || name == "." || name.contains('/') {
            return Err(PathError::NotAName { name: quoted(name) });
        }
        Self::from_segments(self.components().chain(std::iter::once(name)))
    }

    /// Reports whether this is the start directory itself.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names joined by `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Names from the outermost to the innermost.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|name| !name.is_empty())
    }

    /// Returns this path relative to `start`, if `start` is the same path or a parent.
    pub fn beneath(&self, start: &Self) -> Option<Self> {
        let rest = self.0.strip_prefix(&start.0)?;
        let rest = if start.is_empty() || rest.is_empty() {
            rest
        } else {
            rest.strip_prefix('/')?
        };
        Some(Self(rest.to_owned()))
    }

    /// Returns the parent and the last name; `None` for the start directory.
    pub fn split_last(&self) -> Option<(Self, &str)> {
        match self.0.rsplit_once('/') {
            Some((parent, name)) => Some((Self(parent.to_owned()), name)),
            None if self.is_empty() => None,
            None => Some((Self::default(), &self.0)),
        }
    }
}

/// Splits an absolute path into its names.
fn segments_of(raw: &str) -> Result<Vec<&str>, PathError> {
    if raw.is_empty() {
        return Err(PathError::Empty);
    }
    if raw.len() > MAX_PATH_BYTES {
        return Err(PathError::TooLong { bytes: raw.len() });
    }
    if !raw.starts_with('/') {
        return Err(PathError::NotAbsolute { path: quoted(raw) });
    }
    let segments: Vec<&str> = significant_segments(raw).collect();
    if segments.contains(&"..") {
        return Err(PathError::ParentSegment { path: quoted(raw) });
    }
    Ok(segments)
}

fn significant_segments(raw: &str) -> impl Iterator<Item = &str> {
    raw.split('/')
        .filter(|segment| !segment.is_empty() && *segment != ".")
}

fn check_component(name: &str) -> Result<(), PathError> {
    if name == ".." {
        return Err(PathError::ParentSegment { path: quoted(name) });
    }
    if name.len() > MAX_COMPONENT_BYTES {
        return Err(PathError::ComponentTooLong {
            name: quoted(name),
            bytes: name.len(),
        });
    }
    if name.contains('\\') {
        return Err(PathError::Backslash { name: quoted(name) });
    }
    if name.chars().any(is_misleading_char) {
        return Err(PathError::ControlCharacter { name: quoted(name) });
    }
    Ok(())
}

/// Reports whether a character makes a name read differently from what it is, or breaks a list with
/// one name per line.
pub(crate) fn is_misleading_char(c: char) -> bool {
    let breaks_lines = matches!(c, '\u{2028}' | '\u{2029}');
    let overrides_direction = matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    c.is_control() || breaks_lines || overrides_direction
}

#[cfg(test)]
#[path = "virtual_paths_tests.rs"]
mod tests;
