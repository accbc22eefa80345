//! Prompts of turns. Pure.

mod assembly;
mod expected;

pub use assembly::{Prompt, assemble, input_text};
pub use expected::expected_output;
