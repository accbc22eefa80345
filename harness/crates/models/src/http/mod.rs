//! Shared parts of all providers over HTTP: endpoint, timeouts, stream decoding, and the end of an
//! answer.
//!
//! A provider is a `Wire` (its request and the reader of its answers, both pure). `HttpChatModel`
//! sends the request, applies the timeouts and passes the response to the reader.

mod answer_parts;
mod chat;
mod chunks;
mod client;
mod completion;
mod connection;
mod connection_pool;
mod connector;
mod content;
mod credentials;
mod decoder;
mod endpoint;
mod http_caller;
mod lenient;
mod provider_error;
mod request_body;
mod retry_after;
mod settings;
mod sign_in_file;
mod sse;
#[cfg(any(test, feature = "testkit"))]
pub mod strict_kit;
#[cfg(any(test, feature = "testkit"))]
pub mod test_server;
mod think;
mod tool_call_builder;
mod transport_error;
mod wire;
#[cfg(test)]
pub(crate) mod wire_kit;

pub(crate) use answer_parts::{AnswerParts, ModelOrigin, ReplayPart, replay_parts};
pub(crate) use chat::HttpChatModel;
pub(crate) use chunks::{Chunks, add_reasoning, attach_parts, has_content};
pub(crate) use client::HttpResponse;
pub use client::SharedHttp;
pub(crate) use completion::Completion;
pub(crate) use content::{
    Block, Image, blocks, ensure_user_first, push_turn, short_id, system_text, tool_name, wire_id,
    wire_name,
};
pub(crate) use credentials::Credential;
#[cfg(any(test, feature = "testkit"))]
pub(crate) use decoder::Decoder;
pub(crate) use decoder::{AnswerReader, DecodeError};
pub(crate) use endpoint::{Endpoint, ProviderDefaults};
pub(crate) use lenient::{count, count_of, lenient, text};
pub(crate) use provider_error::ProviderError;
pub(crate) use request_body::{JsonPart, RequestBody, ToolTexts};
pub use retry_after::retry_after;
pub(crate) use settings::Settings;
pub use sign_in_file::sign_in;
pub use sse::{EventSplitter, EventTooLong};
pub(crate) use think::ThinkSplitter;
pub(crate) use tool_call_builder::ToolCallBuilder;
pub use transport_error::HttpUnavailable;
pub(crate) use transport_error::TransportError;
pub(crate) use wire::{Call, Wire, bearer};
