//! Transports against a local server.

mod deepseek;
mod http;
mod kit;
mod trust;
