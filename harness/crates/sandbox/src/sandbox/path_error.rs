//! Length limits of virtual paths, and reasons why a text is not one.

use std::fmt;

use thiserror::Error;

use super::roots::{Root, USER_DATA};

/// Maximum length of a path in bytes: the kernel's limit without the final NUL.
pub const MAX_PATH_BYTES: usize = 4095;

/// Maximum length of one name in bytes.
pub const MAX_COMPONENT_BYTES: usize = 255;

/// Reason why a text is not a virtual path. The texts address the model that sent it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PathError {
    /// The text is empty.
    #[error("the path is empty; {}", AllowedRoots)]
    Empty,
    /// The path does not start with `/`.
    #[error("{path} is not an absolute path; {}", AllowedRoots)]
    NotAbsolute {
        /// The path as sent, quoted and truncated.
        path: String,
    },
    /// The path is outside every root.
    #[error("{path} is outside the allowed directories; {}", AllowedRoots)]
    OutsideRoots {
        /// The path as sent, quoted and truncated.
        path: String,
    },
    /// The path has a `..` segment.
    #[error(
        "{path} contains a \"..\" segment, which is not allowed; {}",
        AllowedRoots
    )]
    ParentSegment {
        /// The path as sent, quoted and truncated.
        path: String,
    },
    /// A name contains a backslash, which is a separator on some systems and a character on others.
    #[error(
        "the name {name} contains a backslash; separate directories with \"/\"; {}",
        AllowedRoots
    )]
    Backslash {
        /// The rejected name, quoted and truncated.
        name: String,
    },
    /// A name contains NUL, another control character, or a character that reorders or breaks the
    /// line.
    #[error(
        "the name {name} contains a control or text-direction character; {}",
        AllowedRoots
    )]
    ControlCharacter {
        /// The rejected name, quoted and truncated.
        name: String,
    },
    /// The path is longer than the kernel accepts.
    #[error("the path is {bytes} bytes long, the limit is {MAX_PATH_BYTES}")]
    TooLong {
        /// Length in bytes.
        bytes: usize,
    },
    /// One name is longer than the kernel accepts.
    #[error("the name {name} is {bytes} bytes long, the limit is {MAX_COMPONENT_BYTES}")]
    ComponentTooLong {
        /// The rejected name, quoted and truncated.
        name: String,
        /// Length in bytes.
        bytes: usize,
    },
    /// A single plain name was required.
    #[error("{name} is not a plain file name")]
    NotAName {
        /// The text as sent, quoted and truncated.
        name: String,
    },
}

/// Formats the hint that ends every rejection.
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

/// Formats a text as a short quotation on one line.
pub(super) fn quoted(raw: &str) -> String {
    const MAX_QUOTED_CHARS: usize = 120;
    let mut excerpt: String = raw.chars().take(MAX_QUOTED_CHARS).collect();
    if excerpt.len() < raw.len() {
        excerpt.push('…');
    }
    format!("{excerpt:?}")
}
