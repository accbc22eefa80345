//! Accounting of agent turns.

use super::ledger::Totals;
use super::machine::FlowMachine;
use crate::adapter::{FlowError, Usage};
use crate::compiled::{CompiledFlow, Driver, NodeIndex};

impl FlowMachine {
    /// Counts a turn that begins. Nodes without an agent have no turns.
    ///
    /// # Errors
    /// `budget_exceeded`, if a budget of the run, the agent or the node is used up.
    pub fn begin_turn(
        &mut self,
        flow: &CompiledFlow,
        node: NodeIndex,
        now_ms: u64,
    ) -> Result<(), FlowError> {
        match &flow.nodes[node].driver {
            Driver::Agent(agent) => self.ledger.begin_turn(flow, node, agent, now_ms),
            _ => Ok(()),
        }
    }

    /// Adds tokens, cost and duration of a turn. Returns `true` if a budget limits the cost and the
    /// turn states none.
    pub fn end_turn(
        &mut self,
        flow: &CompiledFlow,
        node: NodeIndex,
        usage: &Usage,
        busy_ms: u64,
    ) -> bool {
        match &flow.nodes[node].driver {
            Driver::Agent(agent) => self.ledger.end_turn(flow, node, agent, usage, busy_ms),
            _ => false,
        }
    }

    /// Adds the totals of a sub-flow.
    pub fn add_nested(&mut self, node: NodeIndex, totals: &Totals) {
        self.ledger.add_nested(node, totals);
    }
}
