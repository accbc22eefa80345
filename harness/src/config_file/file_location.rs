//! Location in a configuration file.

use serde_saphyr::Location;

/// Line and column, both counted from 1; zero if unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileLocation {
    /// Line number.
    pub line: u64,
    /// Column number.
    pub column: u64,
}

impl From<Location> for FileLocation {
    fn from(location: Location) -> Self {
        Self {
            line: location.line(),
            column: location.column(),
        }
    }
}
