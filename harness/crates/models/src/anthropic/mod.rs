//! Anthropic's messages API: the request and the reader of its answers, both pure.
//!
//! Thoughts have signatures, and the API requires both back at the same position. The answer parts
//! of [`super::http`] store the order.

mod decode;
mod event;
mod messages;
mod request;
mod wire;

pub(crate) use wire::Messages;

/// Key of a thought's signature.
const SIGNATURE: &str = "signature";
