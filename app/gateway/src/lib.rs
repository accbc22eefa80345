//! HTTP and SSE: every compatibility rule of the wire lives here and nowhere else.
//!
//! The way of a request: [`router`] finds the route and its [`dialect`], [`extract`] reads the parts, [`input`] turns a body
//! into what the runtime understands, a handler under [`routes`] calls one verb, and [`wire`] or [`sse`] shape the answer.
//! Failures become [`error::ApiError`], and the outermost layer renders them once.

pub mod access;
pub mod cron_runs;
pub mod dialect;
pub mod error;
pub mod extract;
pub mod health;
pub mod history;
pub mod input;
pub mod metrics;
pub mod ports;
pub mod replay;
pub mod sse;
pub mod state;
pub mod thread_index;
pub mod visitors;
pub mod webhooks;
pub mod wire;

mod assistants;
mod bill;
mod codings;
mod cors;
mod edge;
mod expiry;
mod host;
mod linger;
mod openapi;
mod probe;
mod reads;
mod repeats;
mod router;
mod routes;
mod serve;
mod stall;

pub use expiry::{sweep_files, sweep_threads};
pub use router::router;
pub use serve::{ServeOptions, serve};
pub use state::GatewayState;
