//! ACP agents as separate programs: well-behaved ones, hostile ones, and both through the gateway.

mod gateway;
mod hostile;
mod support;
mod tasks;

pub(crate) use self::support::AGENT;
