//! System flows: the folder `flows.path`, read again when it changes.

mod built_in_kinds;
mod folder;
mod watched;

pub(crate) use built_in_kinds::{BuiltInKinds, KINDS};
pub(crate) use folder::{folder_of, read, snapshot};
pub(crate) use watched::{WatchedFlows, watch};
