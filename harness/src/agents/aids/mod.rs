//! What models do for the user beside the conversation: offer follow-up questions, polish a draft.

mod polish;
mod suggest;

pub use polish::Polisher;
pub use suggest::{Said, Suggester};
