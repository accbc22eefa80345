//! HTTP and SSE: every compatibility rule of the wire is in this crate.
//!
//! The path of a request: [`http::router`] selects the route and, with [`guard`], its [`dialect`];
//! [`extract`] reads the parts; [`requests`] turns a body into types of the runtime; a handler
//! under [`routes`] calls one method; [`responses`] or [`sse`] format the result. Failures become
//! [`error::ApiError`], and the outermost layer renders them once.

pub mod background;
pub mod dialect;
pub mod error;
pub mod extract;
pub mod flows;
pub mod guard;
pub mod observability;
pub mod ports;
pub mod queries;
pub mod requests;
pub mod responses;
pub mod sse;
pub mod state;
pub mod thread_log;
pub mod webhooks;

mod http;
mod openapi;
mod routes;
mod schema;

pub use http::router::router;
pub use http::serve::{ServeOptions, serve};
pub use state::{
    AgentServices, ChannelServices, GatewayState, Observability, ProcessServices, RunServices,
    ScheduleServices, SecurityState, SignInServices, ThreadServices,
};
