//! Creates the in-process client.

use std::sync::Arc;

use deerflow_gateway::GatewayState;
use deerflow_gateway::queries::thread_index::GatewayThreadIndex;
use harness::client::{Client, Installation};

use super::context::Context;
use super::resources::Resources;

/// Returns a client with access to the installation.
pub(super) fn open(
    context: &Context<'_>,
    resources: &Resources,
    gateway: Arc<GatewayState>,
) -> Client {
    let runs = gateway.runs.clone();
    Client::new(runs).installation(Installation {
        config: Some(Arc::new(context.config.clone())),
        files: Some(resources.files.clone()),
        file_quota: Some(resources.file_quota.clone()),
        documents: resources.documents.clone(),
        skills: Some(resources.skills.clone()),
        memories: Some(resources.memories.clone()),
        threads: Some(Arc::new(GatewayThreadIndex(gateway))),
        mcp: Some(resources.mcp.clone()),
    })
}
