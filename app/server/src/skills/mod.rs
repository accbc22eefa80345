//! Location of the skills.

pub(crate) mod bundled;
pub(crate) mod folder;
