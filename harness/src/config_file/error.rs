//! Configuration errors, with file, line and key.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::file_location::FileLocation;

/// Failure to load a configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file that was named explicitly does not exist.
    #[error("{}, named by {named_by}, does not exist", path.display())]
    NotFound {
        /// Path of the file.
        path: PathBuf,
        /// `--config` or an environment variable.
        named_by: &'static str,
    },
    /// The file exists but cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file is empty, or contains only comments or `null`.
    #[error(
        "{} contains no settings: it is empty or has only comments. `deerflow config example` prints a commented file; without any file the built-in \
         defaults apply",
        path.display()
    )]
    Empty {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is not valid YAML.
    #[error("{}{}: {}", path.display(), location_suffix(error.place), error.message)]
    Syntax {
        /// Path of the file.
        path: PathBuf,
        /// Cause and location.
        error: SyntaxError,
    },
    /// The file contains values that are not allowed.
    #[error("{}", lines(.0))]
    Invalid(Vec<Problem>),
    /// A variable that the program reads is not UTF-8.
    #[error("environment variable {variable} has a value that is not UTF-8")]
    NotUtf8 {
        /// Name of the variable.
        variable: String,
    },
    /// The `.env` file cannot be read.
    #[error("{}: {message}", path.display())]
    Dotenv {
        /// Path of the file.
        path: PathBuf,
        /// Cause, without any value of the file.
        message: String,
    },
}

/// Failure to parse a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Location of the error.
    pub place: FileLocation,
    /// Cause, in one line.
    pub message: String,
}

/// Invalid value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Source of the value.
    pub origin: Origin,
    /// Dotted key; empty for the whole file.
    pub key: String,
    /// Found value and allowed values.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            write!(f, "{}: {}", self.origin, self.message)
        } else {
            write!(f, "{}: `{}` {}", self.origin, self.key, self.message)
        }
    }
}

/// Source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// A file.
    File {
        /// Path of the file.
        path: PathBuf,
        /// Location in the file.
        place: FileLocation,
    },
    /// An environment variable.
    Variable(String),
    /// A built-in default.
    Defaults,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, place } => {
                write!(f, "{}{}", path.display(), location_suffix(*place))
            }
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Defaults => f.write_str("built-in defaults"),
        }
    }
}

/// Problem that does not prevent a start.
pub type Warning = Problem;

fn location_suffix(place: FileLocation) -> String {
    match place {
        FileLocation { line: 0, .. } => String::new(),
        FileLocation { line, column } => format!(":{line}:{column}"),
    }
}

fn lines(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(Problem::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}
