//! `/api/threads/{thread}/runs` and `/api/runs`.

mod cancel;
mod clarification;
mod commands;
mod create;
mod disconnect;
mod fallbacks;
mod framing;
mod goals;
mod interrupts;
mod join;
mod middlewares;
mod multitask;
mod platform;
mod providers;
mod replay;
mod stateless;
mod subagents;
mod tool_run;
mod tools;
mod wait;
mod web;
mod workspace_changes;
