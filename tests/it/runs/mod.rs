//! `/api/threads/{thread}/runs` and `/api/runs`.

mod cancel;
mod clarification;
mod commands;
mod create;
mod disconnect;
mod framing;
mod goals;
mod guards;
mod interrupts;
mod join;
mod multitask;
mod platform;
mod providers;
mod replay;
mod stand_ins;
mod stateless;
mod subagents;
mod tool_run;
mod tools;
mod wait;
mod web;
