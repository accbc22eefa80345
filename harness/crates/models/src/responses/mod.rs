//! OpenAI's responses API, also used by Codex: the request and the reader of its answers, both
//! pure.
//!
//! The provider stores no state: reasoning arrives encrypted and is sent back at the same position.

mod decode;
mod event;
mod flavor;
mod input;
mod request;
mod wire;

pub(crate) use wire::Responses;
