//! JSON encoding of states, messages and events, each serialized once into shared bytes.

mod checkpoint_frames;
mod events_mode;
mod frames;
mod messages_mode;
mod modes;
mod values;

pub use checkpoint_frames::CheckpointView;
pub use events_mode::RunFacts;
pub use frames::{Frame, error_frame, metadata_frame, to_bytes};
pub use modes::{ModeEncoder, StreamOptions};
pub use values::values_json;
