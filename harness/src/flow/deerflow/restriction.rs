//! Restriction of the tools of a node's agent. Pure.

use serde::Deserialize;
use serde::de::value::Error as ValueError;
use serde::de::value::StrDeserializer;

use crate::agents::tool_restriction::{ApprovalRule, ToolRestriction};
use crate::flow::adapter::Capability;
use crate::flow::compiled::EffectiveAgent;
use crate::flow::schema::Approval;

/// Tool by which a custom agent changes itself. What reaches a node comes from other agents, which
/// must not be able to change it permanently.
const UPDATE_AGENT: &str = "update_agent";

/// Returns the restriction that the asset and the policy of an agent state. An absent
/// `approvalRequirement` leaves approval to the guardrails of the installation.
pub(super) fn restriction_of(agent: &EffectiveAgent) -> ToolRestriction {
    let policy = &agent.tool_policy;
    let of_asset = Some(agent.tools.clone()).filter(|tools| !tools.is_empty());
    let allowed = of_asset
        .into_iter()
        .chain(allowed(&policy.allowed_capabilities));
    let mut blocked = policy.blocked_tools.clone();
    blocked.push(UPDATE_AGENT.to_owned());
    ToolRestriction {
        allowed: allowed.collect(),
        blocked,
        approval: match policy.approval_requirement {
            Some(Approval::Always) => Some(ApprovalRule::Always),
            Some(Approval::DestructiveOnly) => Some(ApprovalRule::Destructive),
            Some(Approval::Never) | None => None,
        },
    }
}

/// Returns the tools and groups among allowed capabilities. `None` if all tools are allowed: the
/// list is empty, or has the capability `tool-calls`.
fn allowed(capabilities: &[String]) -> Option<Vec<String>> {
    let mut tools = Vec::new();
    for name in capabilities {
        let name_of = StrDeserializer::<ValueError>::new(name);
        match Capability::deserialize(name_of) {
            Ok(Capability::ToolCalls) => return None,
            Ok(_) => {}
            Err(_) => tools.push(name.clone()),
        }
    }
    (!capabilities.is_empty()).then_some(tools)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn capabilities_are_no_tools() {
        assert_eq!(allowed(&[]), None);
        assert_eq!(allowed(&names(&["ls", "tool-calls"])), None);
        assert_eq!(allowed(&names(&["streaming", "ls"])), Some(names(&["ls"])));
        assert_eq!(allowed(&names(&["streaming"])), Some(Vec::new()));
    }
}
