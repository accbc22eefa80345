//! What can be wrong with a configuration, said with file, line and key.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::document::Place;

/// Why no configuration could be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file that was asked for by name is not there.
    #[error("{}, named by {named_by}, does not exist", path.display())]
    NotFound {
        /// The file.
        path: PathBuf,
        /// `--config` or an environment variable.
        named_by: &'static str,
    },
    /// The file is there and cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is empty, or holds nothing but comments or `null`.
    #[error(
        "{} holds no settings: it is empty, or has comments alone. `deerflow config example` prints a commented file; without any file the built-in \
         defaults hold",
        path.display()
    )]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is no YAML.
    #[error("{}{}: {}", path.display(), colons(error.place), error.message)]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The cause and its place.
        error: SyntaxError,
    },
    /// The file is YAML and holds values that are not allowed.
    #[error("{}", lines(.0))]
    Invalid(Vec<Problem>),
    /// An environment variable that the program reads is no text.
    #[error("environment variable {variable} has a value that is not UTF-8")]
    NotUtf8 {
        /// The variable.
        variable: String,
    },
    /// The `.env` file cannot be read.
    #[error("{}: {message}", path.display())]
    Dotenv {
        /// The file.
        path: PathBuf,
        /// The cause, without any value of the file.
        message: String,
    },
}

/// Why a text is no YAML document of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Where.
    pub place: Place,
    /// Why, in one line.
    pub message: String,
}

/// One wrong value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it was written.
    pub origin: Origin,
    /// The dotted key; empty for the whole file.
    pub key: String,
    /// What is wrong: what was found and what is allowed.
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

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// In a file.
    File {
        /// The file.
        path: PathBuf,
        /// Where in it.
        place: Place,
    },
    /// In an environment variable.
    Variable(String),
    /// Nowhere: a default.
    Defaults,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, place } => write!(f, "{}{}", path.display(), colons(*place)),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Defaults => f.write_str("built-in defaults"),
        }
    }
}

/// Something odd that does not stop a start.
pub type Warning = Problem;

fn colons(place: Place) -> String {
    match place {
        Place { line: 0, .. } => String::new(),
        Place { line, column } => format!(":{line}:{column}"),
    }
}

fn lines(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(Problem::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}
