//! `/flows`: graphs of agents that users write as YAML or JSON.

mod about;
mod body;
mod conditions;
mod errors;
mod export;
mod import;
mod json;
mod list;
mod read;
mod redact;
mod save;
mod validate;
mod versions;
mod write;

pub(crate) use about::{adapters, assets, node_kinds, reload, schema};
pub(crate) use export::export;
pub(crate) use import::import;
pub(crate) use list::{MAX_LISTED, list};
pub(crate) use read::{GRAPH_FORMATS, get, graph};
pub(crate) use validate::validate;
pub(crate) use versions::{restore, versions};
pub(crate) use write::{create, delete, put};

/// Paths below `/flows` that no flow may have as its id.
const RESERVED_SLUGS: [&str; 6] = [
    "adapters",
    "assets",
    "import",
    "node-kinds",
    "schema",
    "validate",
];
