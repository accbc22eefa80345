//! What the integration tests, the SDK tests and the benchmark share: a scripted model, an SSE reader.

pub mod local_server;
pub mod scripted_openai;
pub mod sse;
