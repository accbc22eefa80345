//! Model calls that assist the user outside of a conversation: follow-up suggestions and draft
//! rewriting.

mod polish;
mod suggest;

pub use polish::Polisher;
pub use suggest::{DialogueMessage, Suggester};
