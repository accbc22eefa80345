//! Checks before a request reaches its handler: host, origin, credentials, content coding.

pub mod auth;
pub mod origin_policy;
pub mod trusted_proxies;
pub mod web_client;

pub(crate) mod answer_memory;
pub(crate) mod body_memory;
mod content_coding;
pub(crate) mod cookies;
mod csrf;
mod host;
mod host_port;
mod memory_budget;
pub(crate) mod paths;
pub(crate) mod permissions;
pub(crate) mod pipeline;
pub(crate) mod received_body;
pub(crate) mod request_guard;
mod response_headers;
pub(crate) mod session_stream;
