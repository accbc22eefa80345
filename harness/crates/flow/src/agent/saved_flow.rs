//! Saved form of a flow's scheduling state, from which any process can continue a thread.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::machine::FlowMachine;

/// Scheduling state, and the run that saved it: another run begins with new budgets and sessions.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedFlow {
    run: String,
    flow: Value,
}

impl SavedFlow {
    pub(super) fn new(run: &str, machine: &FlowMachine) -> Self {
        let flow = serde_json::to_value(machine).unwrap_or_else(|error| {
            tracing::error!(%error, "cannot save the state of a flow");
            Value::Null
        });
        Self {
            run: run.to_owned(),
            flow,
        }
    }

    pub(super) fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }

    /// Reports whether this run saved the state.
    pub(super) fn is_of(&self, run: &str) -> bool {
        self.run == run
    }

    pub(super) fn into_machine(self) -> Value {
        self.flow
    }
}
