//! Virtual paths: the only names under which a model, an upload or an artifact request can mean a file.

use std::fmt;

use thiserror::Error;

/// The directory that holds the thread's three roots, as models and clients see it.
pub const USER_DATA: &str = "/mnt/user-data";

/// Where skills are read, as models see it.
pub const SKILLS: &str = "/mnt/skills";

/// Where it is read what agents of other programs left in the thread, as models see it.
pub const ACP_WORKSPACE: &str = "/mnt/acp-workspace";

/// The longest path accepted, in bytes: what the kernel takes besides its final NUL.
pub const MAX_PATH_BYTES: usize = 4095;

/// The longest name of one file or directory, in bytes.
pub const MAX_COMPONENT_BYTES: usize = 255;

/// One of the places that a conversation knows files in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Root {
    /// The agent's working directory.
    Workspace,
    /// What the user handed in.
    Uploads,
    /// What the agent hands out.
    Outputs,
    /// Where agents of other programs work for the thread; nobody else writes there.
    AcpWorkspace,
    /// What the agent reads to know how work is done; nobody writes there. It is no folder of the thread.
    Skills,
    /// A folder that an administrator shows; the way is from `/` on. It is no folder of the thread.
    Mounts,
}

impl Root {
    /// The roots of a thread that its agent writes to, in the order in which they are shown.
    pub const ALL: [Self; 3] = [Self::Workspace, Self::Uploads, Self::Outputs];

    /// The name of the root's directory, on the host and in virtual paths alike.
    pub const fn dir_name(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Uploads => "uploads",
            Self::Outputs => "outputs",
            Self::AcpWorkspace => "acp-workspace",
            Self::Skills => "skills",
            Self::Mounts => "mounts",
        }
    }

    fn from_dir_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|root| root.dir_name() == name)
    }
}

/// A file or directory beneath one of the [`Root`]s; the root itself when `relative` is empty.
///
/// Its text form is canonical: parsing what [`Display`](fmt::Display) wrote gives the same value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualPath {
    root: Root,
    relative: RelativePath,
}

impl VirtualPath {
    /// Reads an absolute virtual path of a file or directory that belongs to a thread.
    ///
    /// Empty and `.` segments are dropped, so a doubled or final `/` does no harm. `..` is refused
    /// wherever it stands instead of being resolved: what it means depends on links on the disk.
    ///
    /// # Errors
    /// A [`PathError`] whose text tells the model what would have been accepted.
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

    /// As [`parse`](Self::parse), where skills and what other agents left will do too: for what only reads.
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

    /// Reads any absolute path: for what knows which of them mean something.
    pub(super) fn parse_mounted(raw: &str) -> Result<Self, PathError> {
        Ok(Self {
            root: Root::Mounts,
            relative: RelativePath::from_segments(segments_of(raw)?.into_iter())?,
        })
    }

    /// The root itself.
    pub fn of_root(root: Root) -> Self {
        Self {
            root,
            relative: RelativePath::default(),
        }
    }

    /// `relative` beneath `root`.
    pub fn new(root: Root, relative: RelativePath) -> Self {
        Self { root, relative }
    }

    /// The root that the path lies in.
    pub fn root(&self) -> Root {
        self.root
    }

    /// The way from the root, empty for the root itself.
    pub fn relative(&self) -> &RelativePath {
        &self.relative
    }

    /// The last name in the path, or the name of the root.
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

/// Names joined by single `/`, none of them empty, `.`, `..`, over-long or with a refused character.
///
/// [`safe_fs`](super::safe_fs) takes nothing else, so a name that climbs cannot even be expressed.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelativePath(String);

impl RelativePath {
    /// Reads a relative path by the rules of [`VirtualPath::parse`].
    ///
    /// # Errors
    /// Anything that is not a plain way downwards.
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

    /// Joins names that are plain by their types, or paths of such names.
    pub(crate) fn of_plain_names(names: &[&str]) -> Self {
        let joined = names.join("/");
        debug_assert_eq!(
            Self::parse(&joined).as_ref().map(Self::as_str),
            Ok(joined.as_str())
        );
        Self(joined)
    }

    /// This path with one more name at its end.
    ///
    /// # Errors
    /// When `name` is not a plain name or the result is too long.
    pub fn join(&self, name: &str) -> Result<Self, PathError> {
        if name.is_empty() || name == "." || name.contains('/') {
            return Err(PathError::NotAName { name: quoted(name) });
        }
        Self::from_segments(self.components().chain(std::iter::once(name)))
    }

    /// Whether this is the starting directory itself.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names joined by `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names from the outermost to the innermost.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|name| !name.is_empty())
    }

    /// The way here from `start`, when that is the same place or above it.
    pub fn beneath(&self, start: &Self) -> Option<Self> {
        let rest = self.0.strip_prefix(&start.0)?;
        let rest = if start.is_empty() || rest.is_empty() {
            rest
        } else {
            rest.strip_prefix('/')?
        };
        Some(Self(rest.to_owned()))
    }

    /// The directory and the name in it; nothing for the starting directory.
    pub fn split_last(&self) -> Option<(Self, &str)> {
        match self.0.rsplit_once('/') {
            Some((parent, name)) => Some((Self(parent.to_owned()), name)),
            None if self.is_empty() => None,
            None => Some((Self::default(), &self.0)),
        }
    }
}

/// Why a text is not a virtual path. The texts are written for the model that sent it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PathError {
    /// Nothing was given.
    #[error("the path is empty; {}", AllowedRoots)]
    Empty,
    /// It does not start with `/`.
    #[error("{path} is not an absolute path; {}", AllowedRoots)]
    NotAbsolute {
        /// What was given, quoted and cut.
        path: String,
    },
    /// It lies outside every root.
    #[error("{path} is outside the allowed directories; {}", AllowedRoots)]
    OutsideRoots {
        /// What was given, quoted and cut.
        path: String,
    },
    /// It has a `..` segment.
    #[error(
        "{path} contains a \"..\" segment, which is not allowed; {}",
        AllowedRoots
    )]
    ParentSegment {
        /// What was given, quoted and cut.
        path: String,
    },
    /// It has a backslash, which means a separator to some readers and a letter to others.
    #[error(
        "the name {name} contains a backslash; separate directories with \"/\"; {}",
        AllowedRoots
    )]
    Backslash {
        /// The offending name, quoted and cut.
        name: String,
    },
    /// It has a NUL, another control character, or a character that reorders or breaks the line.
    #[error(
        "the name {name} contains a control or text-direction character; {}",
        AllowedRoots
    )]
    ControlCharacter {
        /// The offending name, quoted and cut.
        name: String,
    },
    /// It is longer than the system can take.
    #[error("the path is {bytes} bytes long, the limit is {MAX_PATH_BYTES}")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// One of its names is longer than the system can take.
    #[error("the name {name} is {bytes} bytes long, the limit is {MAX_COMPONENT_BYTES}")]
    ComponentTooLong {
        /// The offending name, quoted and cut.
        name: String,
        /// How long it is.
        bytes: usize,
    },
    /// Where one plain name was needed, there was none or several.
    #[error("{name} is not a plain file name")]
    NotAName {
        /// What was given, quoted and cut.
        name: String,
    },
}

/// Writes the hint that every refusal ends with.
struct AllowedRoots;

impl fmt::Display for AllowedRoots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("use an absolute path under ")?;
        for (position, root) in Root::ALL.into_iter().enumerate() {
            let separator = match position {
                0 => "",
                1 => ", ",
                _ => " or ",
            };
            write!(f, "{separator}{USER_DATA}/{}", root.dir_name())?;
        }
        Ok(())
    }
}

/// The names in an absolute path.
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
    if name.chars().any(misleads_a_reader) {
        return Err(PathError::ControlCharacter { name: quoted(name) });
    }
    Ok(())
}

/// Characters that make a name read differently from what it is, or break a list of one name per line.
pub(crate) fn misleads_a_reader(c: char) -> bool {
    let breaks_lines = matches!(c, '\u{2028}' | '\u{2029}');
    let overrides_direction = matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    c.is_control() || breaks_lines || overrides_direction
}

/// The text as a short quotation that stays on one line, whatever is in it.
fn quoted(raw: &str) -> String {
    const SHOWN_CHARS: usize = 120;
    let mut shown: String = raw.chars().take(SHOWN_CHARS).collect();
    if shown.len() < raw.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

#[cfg(test)]
#[path = "virtual_paths_tests.rs"]
mod tests;
