//! Saved form of a flow's scheduling state, from which any process can continue a thread.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::step_changes::StepChanges;
use crate::driver::Histories;
use crate::machine::FlowMachine;

/// Scheduling state, and the run that saved it: another run begins with new budgets and sessions.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedFlow {
    run: String,
    /// JSON text of the scheduling state: the runtime copies the whole more often than it is read.
    flow: String,
    #[serde(default, skip_serializing_if = "StepChanges::is_empty")]
    changes: StepChanges,
    /// Turns of the sessions of a sub-flow, whose state is not in the thread's log.
    #[serde(default, skip_serializing_if = "Histories::is_empty")]
    histories: Histories,
}

impl SavedFlow {
    pub(super) fn new(run: &str, machine: &FlowMachine, changes: &StepChanges) -> Self {
        let flow = serde_json::to_string(machine).unwrap_or_else(|error| {
            tracing::error!(%error, "cannot save the state of a flow");
            String::new()
        });
        Self {
            run: run.to_owned(),
            flow,
            changes: changes.clone(),
            histories: Histories::default(),
        }
    }

    /// Adds the turns of a sub-flow's sessions.
    pub(super) fn with_histories(mut self, histories: Histories) -> Self {
        self.histories = histories;
        self
    }

    /// Takes the turns of a sub-flow's sessions.
    pub(super) fn take_histories(&mut self) -> Histories {
        std::mem::take(&mut self.histories)
    }

    pub(super) fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }

    /// Reports whether this run saved the state.
    pub(super) fn is_of(&self, run: &str) -> bool {
        self.run == run
    }

    /// Returns the scheduling state, and the changes of the current superstep.
    pub(super) fn into_parts(self) -> serde_json::Result<(Value, StepChanges)> {
        Ok((serde_json::from_str(&self.flow)?, self.changes))
    }
}
