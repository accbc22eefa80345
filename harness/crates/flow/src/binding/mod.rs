//! Which agent and adapter execute a node.

mod known_adapters;

pub use known_adapters::{AdapterList, KnownAdapter, KnownAdapters, settings_of_alias};
