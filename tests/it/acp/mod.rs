//! Agents that are programs of their own: well-behaved ones, hostile ones, and all of it through the gateway.

mod gateway;
mod hostile;
mod kit;
mod tasks;
