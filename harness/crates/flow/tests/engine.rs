//! Tests of the engine: machine, driver, prompts and the fake adapter.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "engine/budgets.rs"]
mod budgets;
#[path = "engine/checkpoints.rs"]
mod checkpoints;
#[path = "engine/failures.rs"]
mod failures;
#[path = "engine/fixture.rs"]
mod fixture;
#[path = "engine/humans.rs"]
mod humans;
#[path = "engine/inputs.rs"]
mod inputs;
#[path = "engine/properties.rs"]
mod properties;
#[path = "flow_cases/recorder.rs"]
mod recorder;
#[path = "engine/scheduling.rs"]
mod scheduling;
#[path = "engine/sessions.rs"]
mod sessions;
#[path = "engine/stopping.rs"]
mod stopping;
#[path = "engine/subflows.rs"]
mod subflows;
#[path = "support/mod.rs"]
mod support;
#[path = "engine/takeover.rs"]
mod takeover;
#[path = "engine/writes.rs"]
mod writes;
