//! Loads a `config.yaml` as the server does: locates and parses the file, validates its values, and
//! collects warnings.
//!
//! Layers, later ones override earlier ones: defaults of the typed sections, the file with its
//! `$VARIABLES`, variables such as `DEERFLOW_DATABASE__BACKEND`. Older layouts are supported. The
//! environment is passed as a value ([`Environment`]); nothing here reads it implicitly.

mod document;
mod environment;
mod error;
mod explain;
mod extension_settings;
mod file_location;
mod ineffective_settings;
mod inert_values;
mod known_keys;
mod load;
mod locate;
mod memory_settings;
mod older_store;
mod overrides;
mod provider_credentials;
mod unknown_keys;
mod variables;

pub use document::{Content, Entry, Node};
pub use environment::{Environment, parse_switch};
pub use error::{ConfigError, Origin, Problem, SyntaxError, Warning};
pub use file_location::FileLocation;
pub use load::{Loaded, digest, load, load_file, parse, read_text};
pub use locate::{locate, locate_extensions};

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::config_file::FileLocation as Place;
