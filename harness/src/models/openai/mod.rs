//! OpenAI-compatible chat completions: the request, the stream's decoder, and the driver between them.
//!
//! `wire` and `decode` are pure; `adapter` waits and fails. A server that differs gets a row in `dialect`, not a copy.

mod adapter;
mod calls;
mod decode;
mod dialect;
mod embeddings;
mod event;
mod http;
mod options;
mod retry_after;
mod sse;
#[cfg(test)]
mod test_http;
mod think;
mod wire;

pub use adapter::OpenAiChatModel;
pub(in crate::models) use dialect::Dialect;
pub use embeddings::{EmbeddingEntry, OPENAI_BASE_URL, OpenAiEmbedder};
pub use http::{HttpUnavailable, SharedHttp};
