//! Flows of users and of the system: lookup, validation, compiled forms, the flows of a project, and
//! flows as assistants.

mod adapters;
mod assistants;
mod catalog;
mod check;
mod compiled;
mod project;
mod system;
mod version;

pub use adapters::FlowAdapters;
pub use assistants::FlowAssistants;
pub(crate) use assistants::flow_slug;
pub use catalog::FlowCatalog;
pub use check::{CheckedFlow, FlowRules};
pub use project::{
    FoundFlow, MAX_PROJECT_DEPTH, ProjectFile, files_of_archive, flows_of_project, is_project_file,
};
pub use system::{SystemFlow, SystemFlows, SystemProblem, SystemSnapshot};
pub use version::{FlowListing, FlowOwner, FlowVersion};
