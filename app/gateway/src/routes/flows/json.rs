//! JSON of flows.

use deerflow_domain::flows::{FlowRecord, FlowVersionRecord};
use harness::clock::iso;
use serde_json::{Value, json};

use crate::flows::{FlowListing, FlowOwner};

/// Returns a flow without its content.
pub(super) fn record_json(owner: FlowOwner, record: &FlowRecord) -> Value {
    let summary = &record.summary;
    json!({
        "flowId": record.slug,
        "assistantId": format!("flow-{}", record.slug),
        "owner": owner.as_str(),
        "name": summary.name,
        "description": summary.description,
        "schemaVersion": summary.schema_version,
        "nodeCount": summary.node_count,
        "agentCount": summary.agent_count,
        "version": record.version,
        "contentHash": record.content_hash,
        "createdAt": iso(record.created_at),
        "updatedAt": iso(record.updated_at),
        "errors": [],
    })
}

/// Returns an entry of a list.
pub(super) fn listing_json(listing: &FlowListing) -> Value {
    let mut json = record_json(listing.owner, &listing.record);
    json["errors"] = json!(listing.errors);
    json
}

/// Returns a version of a flow.
pub(super) fn version_json(version: &FlowVersionRecord) -> Value {
    let summary = &version.summary;
    json!({
        "version": version.version,
        "contentHash": version.content_hash,
        "name": summary.name,
        "description": summary.description,
        "nodeCount": summary.node_count,
        "agentCount": summary.agent_count,
        "createdAt": iso(version.created_at),
    })
}
