//! Saved form of a flow's scheduling state, from which any process can continue a thread.

use deerflow_core::state::StateUpdate;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::machine::FlowMachine;

/// Scheduling state, and the run that saved it: another run begins with new budgets and sessions.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedFlow {
    run: String,
    flow: Value,
    /// Channel updates of the visits that were committed since the last superstep. The channels of
    /// the state get them with the end of the superstep.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    values: Map<String, Value>,
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
            values: Map::new(),
        }
    }

    /// Adds channel updates of committed visits.
    pub(super) fn with_values(mut self, update: StateUpdate) -> Self {
        self.values = update.channels.into_iter().collect();
        self
    }

    /// Takes the channel updates of committed visits.
    pub(super) fn take_values(&mut self) -> StateUpdate {
        StateUpdate {
            messages: Vec::new(),
            channels: std::mem::take(&mut self.values).into_iter().collect(),
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
