//! End-to-end tests of the real gateway binary over HTTP. The folders mirror the routes.

mod acp;
mod agents;
mod bad_input;
mod console;
mod containers;
mod disk;
mod flow_kinds;
mod flows;
mod gateway_process;
mod health;
mod mcp;
mod mcp_server;
mod models;
mod redis;
mod reload;
mod restart;
mod rig;
mod runs;
mod secrets;
mod skills;
mod spans;
mod start;
mod store;
mod threads;
mod traces;
mod wire_recording;
