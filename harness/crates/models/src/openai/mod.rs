//! OpenAI-compatible chat completions: the request and the reader of its answers, both pure.
//!
//! A server that differs gets a constant in `dialect`, not a copy of the code.

mod assistant_message;
mod calls;
mod chat;
mod decode;
mod dialect;
mod embeddings;
mod event;
mod reasoning_details;
mod text_calls;
mod tool_message;
mod user_message;
mod wire;

pub(crate) use chat::ChatCompletions;
pub(crate) use dialect::Dialect;
pub use embeddings::{EmbeddingEntry, OPENAI_BASE_URL, OpenAiEmbedder};
