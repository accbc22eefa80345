//! Steps that all changes of flows share.

use deerflow_domain::flows::{Expected, FlowContent, FlowRecord, FlowWrite, SaveError, is_slug};
use deerflow_flow::finding::Finding;
use harness::agents::custom::AgentName;
use harness::runtime::compute::heavy_poll;
use serde_json::json;

use super::RESERVED_SLUGS;
use super::errors::invalid;
use crate::error::{ApiError, Issue};
use crate::flows::FlowRules;
use crate::state::GatewayState;

/// A write with the warnings of its content.
pub(super) struct Prepared {
    pub(super) write: FlowWrite,
    pub(super) warnings: Vec<Finding>,
}

/// Validates a content and prepares its write.
pub(super) async fn prepare(
    state: &GatewayState,
    slug: String,
    content: FlowContent,
    expected: Expected,
) -> Result<Prepared, ApiError> {
    heavy_poll(FlowRules::size(&content)).await;
    let checked = state.agent_services.flows.rules().check(content);
    let Some((content, summary)) = checked.checked else {
        return Err(invalid(&checked.validation.errors));
    };
    let write = FlowWrite {
        slug,
        expected,
        content,
        summary,
    };
    Ok(Prepared {
        write,
        warnings: checked.validation.warnings,
    })
}

/// Stores writes of a user, all or none.
pub(super) async fn save(
    state: &GatewayState,
    user: &str,
    writes: Vec<FlowWrite>,
) -> Result<Vec<FlowRecord>, SaveError> {
    let (quota, now) = (state.info.flow_quota(), state.process.clock.now());
    let store = state.agent_services.flows.store();
    store.save(user, writes, quota, now).await
}

/// Rejects an id that a new flow of the user cannot have.
pub(super) async fn require_free_slug(
    state: &GatewayState,
    user: &str,
    slug: &str,
) -> Result<(), ApiError> {
    if !is_slug(slug) {
        let message = "Should be 1 to 59 lower-case letters, digits and inner hyphens";
        let issue = Issue::new(
            "string_pattern_mismatch",
            vec!["query".into(), "id".into()],
            message,
            &json!(slug),
        );
        return Err(ApiError::issue(issue));
    }
    if RESERVED_SLUGS.contains(&slug) {
        return Err(ApiError::Conflict(format!("The id '{slug}' is reserved")));
    }
    if state.agent_services.flows.system().flows.contains_key(slug) {
        return Err(ApiError::Conflict(format!(
            "'{slug}' is the id of a system flow"
        )));
    }
    // Custom agents of such names may be older than flows.
    let name = AgentName::parse(&format!("flow-{slug}"));
    let Ok(name) = name else { return Ok(()) };
    let agents = &state.agent_services.custom_agents;
    match agents.get(user, &name).await? {
        Some(_) => Err(ApiError::Conflict(format!(
            "An agent '{name}' exists already"
        ))),
        None => Ok(()),
    }
}
