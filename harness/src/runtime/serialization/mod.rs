//! The outward JSON of states, messages and events, each serialized once into shared bytes.

mod frames;
mod messages_mode;
mod modes;
mod values;

pub use frames::{Frame, error_frame, metadata_frame, to_bytes};
pub use modes::{CheckpointView, ModeEncoder};
pub use values::values_json;
