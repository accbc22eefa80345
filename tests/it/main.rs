//! The gateway as its clients meet it: the real binary, over HTTP. The folders mirror the routes.

mod bad_input;
mod gateway_process;
mod health;
mod models;
mod redis;
mod reload;
mod restart;
mod rig;
mod runs;
mod secrets;
mod spans;
mod start;
mod store;
mod threads;
mod traces;
