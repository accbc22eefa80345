//! Conversion of requests to types of the runtime. Pure: every compatibility rule of input is here
//! and nowhere else.

mod assistant;
pub mod bodies;
mod checkpoint;
mod command;
mod modes;
mod options;
mod request_echo;
mod run_request;
mod state;
mod timing;
mod unsupported;

pub(crate) use assistant::is_name_of;
pub use assistant::{assistant_uuid, resolve_assistant};
pub use checkpoint::{NamedCheckpoint, NestedRef, before_cursor, checkpoint_of, nested_of};
pub(crate) use command::NodeCommand;
pub use modes::mode_filter;
pub(crate) use options::{check_config, is_server_key};
pub use run_request::{Defaults, RunTarget, UnreadRequest, into_request};
pub use state::{StateValues, coerce_messages, read_values};
