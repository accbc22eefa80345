//! Options of a validation.

use std::fmt;

use crate::assets::AssetFiles;

/// Options of a validation and of a compilation.
#[derive(Clone, Copy)]
pub struct Options<'p> {
    /// `true` if an unknown node kind is an error; else it is a warning and its node does nothing.
    pub strict: bool,
    /// `true` if adapters check the configuration of agents.
    pub deep: bool,
    /// `true` if unknown fields are reported.
    pub unknown_fields: bool,
    /// Files of the flow's project, for relative paths of `promptFile`. Without a project such
    /// paths are not valid.
    pub project: Option<&'p dyn AssetFiles>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            strict: true,
            deep: false,
            unknown_fields: false,
            project: None,
        }
    }
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("strict", &self.strict)
            .field("deep", &self.deep)
            .field("unknown_fields", &self.unknown_fields)
            .field("project", &self.project.is_some())
            .finish()
    }
}
