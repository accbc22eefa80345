//! A `config.yaml` as the server reads it: where it is found, what its values may be, and what there is to say about it.
//!
//! Layers, the later winning: defaults of the typed sections, the file with its `$VARIABLES`, variables such as
//! `DEERFLOW_DATABASE__BACKEND`. Older layouts are read too. The environment is a value ([`Environment`]); nothing here reads it unasked.

mod document;
mod environment;
mod error;
mod explain;
mod known_keys;
mod load;
mod locate;
mod older_store;
mod overrides;
mod sign_in;
mod unknown_keys;
mod variables;
mod without_effect;

pub use document::{Content, Entry, Node, Place};
pub use environment::{Environment, parse_switch};
pub use error::{ConfigError, Origin, Problem, SyntaxError, Warning};
pub use load::{Loaded, digest, load, load_file, parse, read_text};
pub use locate::{locate, locate_extensions};
