//! Checks before a request reaches its handler: host, origin, API key, content coding.

pub mod auth;
pub mod origin_policy;

mod content_coding;
mod host;
pub(crate) mod request_guard;
