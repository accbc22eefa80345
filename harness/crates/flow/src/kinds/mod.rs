//! Node kinds: their ports, settings and what executes them.

mod built_in;
mod list;
mod migrate;
mod node_kinds;
mod settings;

pub use built_in::KindDriver;
pub use list::{NodeKindInfo, node_kinds};
pub use migrate::{MIGRATED_VERSION, SUPPORTED_VERSIONS, migrate};
pub use node_kinds::{NodeKinds, Ports, effective_kind};
pub(crate) use settings::settings_of;

#[cfg(test)]
#[path = "kinds_tests.rs"]
mod tests;
