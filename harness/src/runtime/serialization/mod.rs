//! The outward JSON of states, messages and events, each serialized once into shared bytes.

mod frames;

pub use frames::{Frame, metadata_frame, to_bytes};
