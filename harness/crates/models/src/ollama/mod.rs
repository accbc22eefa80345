//! Ollama's own API: the request and the reader of its answers, both pure.

mod decode;
mod request;
mod wire;

pub(crate) use wire::Chat;

/// Value of `model_provider`.
const PROVIDER: &str = "ollama";
