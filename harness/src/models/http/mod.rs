//! What all providers over HTTP share: the way to a server, waiting within limits, cutting streams, and the end of an answer.
//!
//! A provider is a `Wire` (its request and the reader of its answers, both pure); `HttpChatModel` does the rest for all.

mod call_pieces;
mod chat;
mod client;
mod content;
mod credentials;
mod decoder;
mod ending;
mod endpoint;
mod lenient;
mod parts;
mod refused;
mod retry_after;
mod settings;
mod sign_in_file;
mod sse;
#[cfg(test)]
pub(crate) mod strict_kit;
#[cfg(test)]
pub(crate) mod test_server;
mod think;
mod wire;
#[cfg(test)]
pub(in crate::models) mod wire_kit;

pub(in crate::models) use call_pieces::CallPieces;
pub(in crate::models) use chat::HttpChatModel;
pub use client::{HttpUnavailable, SharedHttp};
pub(in crate::models) use content::{
    Block, Image, blocks, push_turn, short_id, system_text, tool_name, user_first, wire_id,
    wire_name,
};
pub(in crate::models) use credentials::Credential;
#[cfg(any(test, feature = "testkit"))]
pub(in crate::models) use decoder::Decoder;
pub(in crate::models) use decoder::{AnswerReader, Chunks, DecodeError};
pub(in crate::models) use ending::{Ending, add_reasoning, keep_parts, says_something};
pub(in crate::models) use endpoint::{Endpoint, Site};
pub(in crate::models) use lenient::{count, count_of, lenient};
pub(in crate::models) use parts::{Maker, Parts, Said, said};
pub(in crate::models) use refused::Refused;
pub(in crate::models) use retry_after::retry_after;
pub(in crate::models) use settings::Settings;
pub use sign_in_file::sign_in;
#[cfg(any(test, feature = "mcp", feature = "testkit"))]
pub(crate) use sse::{EventCutter, EventTooLong};
pub(in crate::models) use think::ThinkSplitter;
pub(in crate::models) use wire::{Call, Wire, bearer};
