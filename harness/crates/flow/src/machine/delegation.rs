//! Decision about a turn's proposal to delegate. An approved proposal is published, not executed.

use serde_json::{Map, Value, json};

use super::machine::FlowMachine;
use crate::compiled::{CompiledFlow, Driver, NodeIndex};
use crate::schema::{DelegationMode, SubagentPolicy};

/// Decision about a proposal.
#[derive(Debug, Clone, PartialEq)]
pub struct DelegationDecision {
    /// Result.
    pub verdict: Verdict,
    /// Checks in order, each with its result.
    pub trace: Vec<(&'static str, bool)>,
}

/// Result of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Approved.
    Approved,
    /// Rejected.
    Rejected,
}

impl DelegationDecision {
    /// Returns the form for clients.
    pub fn to_value(&self, proposal: &Map<String, Value>) -> Value {
        let trace: Vec<Value> = self
            .trace
            .iter()
            .map(|(check, passed)| json!({"check": check, "passed": passed}))
            .collect();
        json!({
            "requestId": proposal.get("requestId"),
            "requestedAgentId": proposal.get("requestedAgentId"),
            "status": if self.verdict == Verdict::Approved { "approved" } else { "rejected" },
            "policyTrace": trace,
        })
    }
}

impl FlowMachine {
    /// Decides about a proposal of the agent of `node`, and counts it. `None` if the node has no
    /// agent.
    pub fn decide_delegation(
        &mut self,
        flow: &CompiledFlow,
        node: NodeIndex,
        proposal: &Map<String, Value>,
    ) -> Option<DelegationDecision> {
        let Driver::Agent(agent) = &flow.nodes[node].driver else {
            return None;
        };
        let earlier = self.ledger.count_delegation(&agent.agent.agent_id);
        let exists = |id: &str| {
            let inline = &flow.document.agents.agent_defs;
            let bound = flow.nodes.iter().any(|node| match &node.driver {
                Driver::Agent(agent) => agent.agent.agent_id == id,
                _ => false,
            });
            bound || inline.iter().any(|agent| agent.agent_id == id)
        };
        Some(decide(
            &agent.agent.subagent_policy,
            proposal,
            exists,
            earlier,
        ))
    }
}

fn decide(
    policy: &SubagentPolicy,
    proposal: &Map<String, Value>,
    exists: impl Fn(&str) -> bool,
    earlier: u64,
) -> DelegationDecision {
    let mode = proposal.get("mode").cloned().unwrap_or(Value::Null);
    let mode: Option<DelegationMode> = serde_json::from_value(mode).ok();
    let target = proposal.get("requestedAgentId").and_then(Value::as_str);
    let mode_allowed = mode.is_some_and(|mode| {
        mode == DelegationMode::FlowForced || policy.switch_modes.contains(&mode)
    });
    let target_allowed = target.is_some_and(|target| {
        policy.allowed_agents.is_empty() || policy.allowed_agents.iter().any(|id| id == target)
    });
    let mut trace = Vec::new();
    let checks: [(&'static str, bool); 4] = [
        ("mode_allowed", mode_allowed),
        ("agent_allowed", target_allowed),
        ("agent_exists", target.is_some_and(exists)),
        (
            "delegations_left",
            policy.max_delegations.is_none_or(|limit| earlier < limit),
        ),
    ];
    for (check, passed) in checks {
        trace.push((check, passed));
        if !passed {
            return DelegationDecision {
                verdict: Verdict::Rejected,
                trace,
            };
        }
    }
    DelegationDecision {
        verdict: Verdict::Approved,
        trace,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposal(mode: &str, target: &str) -> Map<String, Value> {
        let value = json!({"mode": mode, "requestedAgentId": target});
        value.as_object().cloned().unwrap()
    }

    fn failed_check(
        policy: &SubagentPolicy,
        mode: &str,
        target: &str,
        earlier: u64,
    ) -> Option<&'static str> {
        let decision = decide(policy, &proposal(mode, target), |id| id != "ghost", earlier);
        decision
            .trace
            .iter()
            .find(|(_, passed)| !passed)
            .map(|(check, _)| *check)
    }

    #[test]
    fn checks_are_made_in_order() {
        let policy = SubagentPolicy {
            allowed_agents: vec!["b".into(), "ghost".into()],
            switch_modes: vec![DelegationMode::AgentSuggested],
            max_delegations: Some(1),
            ..SubagentPolicy::default()
        };
        assert_eq!(
            failed_check(&policy, "policy-resolved", "b", 0),
            Some("mode_allowed")
        );
        assert_eq!(
            failed_check(&policy, "nonsense", "b", 0),
            Some("mode_allowed")
        );
        assert_eq!(
            failed_check(&policy, "agent-suggested", "c", 0),
            Some("agent_allowed")
        );
        assert_eq!(
            failed_check(&policy, "agent-suggested", "ghost", 0),
            Some("agent_exists")
        );
        assert_eq!(
            failed_check(&policy, "agent-suggested", "b", 1),
            Some("delegations_left")
        );
        assert_eq!(failed_check(&policy, "flow-forced", "b", 0), None);
    }
}
