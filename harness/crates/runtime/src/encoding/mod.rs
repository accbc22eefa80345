//! JSON encoding of states, messages and events. Each is serialized once, and its bytes are shared.

mod checkpoint_frames;
mod described_message;
mod events_mode;
mod frames;
mod langgraph;
mod message_pairs;
mod messages_mode;
mod modes;
mod open_messages;
mod run_facts;
mod shared_messages;
mod values;

pub use checkpoint_frames::CheckpointView;
pub use frames::{Frame, error_frame, metadata_frame, to_bytes};
pub use modes::{ModeEncoder, StreamOptions};
pub(crate) use open_messages::OpenMessages;
pub use run_facts::RunFacts;
pub(crate) use values::values_data;
pub use values::values_json;
