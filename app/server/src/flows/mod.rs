//! System flows: the folder `flows.path`, read again when it changes.

mod folder;
mod watched;

pub(crate) use watched::{WatchedFlows, watch};
