//! Conversion between flows and their rows.

use deerflow_domain::flows::{FlowContent, FlowRecord, FlowVersionRecord};
use sea_orm::DbErr;

use crate::db::entity::{flow, flow_version, moment};
use crate::db::json::from_json;

/// Reads the row of a flow. The error of an unreadable one names the flow.
pub(super) fn record(row: flow::Model) -> Result<FlowRecord, DbErr> {
    let slug = row.slug.clone();
    let read = || -> Result<FlowRecord, String> {
        Ok(FlowRecord {
            version: u32::try_from(row.version).map_err(|error| error.to_string())?,
            summary: from_json(&row.summary_json)?,
            slug: row.slug,
            content_hash: row.content_hash,
            created_at: moment(row.created_at),
            updated_at: moment(row.updated_at),
        })
    };
    read().map_err(|reason| damaged(&slug, &reason))
}

/// Reads the row of a version.
pub(super) fn version(row: flow_version::Model) -> Result<FlowVersionRecord, DbErr> {
    let slug = row.slug.clone();
    let read = || -> Result<FlowVersionRecord, String> {
        Ok(FlowVersionRecord {
            version: u32::try_from(row.version).map_err(|error| error.to_string())?,
            summary: from_json(&row.summary_json)?,
            content_hash: row.content_hash,
            created_at: moment(row.created_at),
        })
    };
    read().map_err(|reason| damaged(&slug, &reason))
}

/// Reads a stored content.
pub(super) fn content(hash: &str, json: &str) -> Result<FlowContent, DbErr> {
    from_json(json)
        .map_err(|reason| DbErr::Type(format!("flow content {hash} is damaged: {reason}")))
}

/// Returns `None` for an unreadable row, so that it does not hide the others in a list.
pub(super) fn readable<T>(result: Result<T, DbErr>) -> Option<T> {
    result
        .inspect_err(|error| tracing::error!(%error, "a flow is damaged, omitted from a list"))
        .ok()
}

fn damaged(slug: &str, reason: &str) -> DbErr {
    DbErr::Type(format!("flow {slug} is damaged: {reason}"))
}
