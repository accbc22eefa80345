//! Conversion between connections and their rows.

use deerflow_domain::channels::{Connection, ExternalIdentity};
use sea_orm::DbErr;
use uuid::Uuid;

use crate::db::entity::{channel_connection, moment};
use crate::db::json::from_json;

/// Returns `None` for an unreadable row, so that it does not hide the others.
pub(super) fn readable(row: channel_connection::Model) -> Option<Connection> {
    record(row)
        .inspect_err(|error| tracing::error!(%error, "a connection is damaged, omitted"))
        .ok()
}

/// Reads a row. The error of an unreadable one names it.
pub(super) fn record(row: channel_connection::Model) -> Result<Connection, DbErr> {
    let id = row.connection_id.clone();
    let read = || -> Result<Connection, String> {
        Ok(Connection {
            id: Uuid::parse_str(&row.connection_id).map_err(|error| error.to_string())?,
            user_id: row.user_id,
            identity: ExternalIdentity {
                provider: row.provider,
                account: row.account,
                workspace: row.workspace,
            },
            account_name: row.account_name,
            workspace_name: row.workspace_name,
            active: row.active,
            metadata: from_json(&row.metadata_json)?,
            created_at: moment(row.created_at),
            updated_at: moment(row.updated_at),
        })
    };
    read().map_err(|reason| DbErr::Type(format!("connection {id} is damaged: {reason}")))
}
