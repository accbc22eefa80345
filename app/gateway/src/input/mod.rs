//! From what clients send to what the runtime understands. Pure: every compatibility rule of input is here and nowhere else.

mod assistant;
mod checkpoint;
mod command;
mod kwargs;
mod modes;
mod options;
mod run_spec;
mod state;
mod timing;

pub use assistant::{assistant_uuid, resolve_assistant};
pub use checkpoint::{NestedRef, before_cursor, checkpoint_of, nested_of};
pub(crate) use command::NodeCommand;
pub use modes::mode_filter;
pub(crate) use options::is_server_key;
pub use run_spec::{Defaults, RunTarget, into_spec};
pub use state::{StateValues, coerce_messages, read_values};
