//! State of a thread: its messages and named channels, and the reducers that apply updates.

mod message_reducer;
mod reducers;
mod thread_state;
mod update;

pub use reducers::{CHANNELS, Reducer, StateError, reducer_of};
pub use thread_state::ThreadState;
pub use update::StateUpdate;
