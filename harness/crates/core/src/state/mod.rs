//! State of a thread: its messages and named channels, and the reducers that apply updates.

mod channels;
mod histories;
mod message_list;
mod message_reducer;
mod reducers;
mod thread_state;
mod update;

#[expect(deprecated, reason = "the former function still resolves")]
pub use channels::reducer_of;
pub use channels::{CHANNELS, Channels, InvalidChannel, Reducer};
pub use histories::Histories;
pub use reducers::StateError;
pub use thread_state::ThreadState;
pub use update::StateUpdate;
