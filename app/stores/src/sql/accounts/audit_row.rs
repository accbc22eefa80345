//! Rows of the audit log.

use deerflow_domain::accounts::{AuditAction, AuditEntry, AuditOutcome, NewAuditEntry};
use sea_orm::ActiveValue::Set;
use sea_orm::{DatabaseTransaction, DbErr, EntityTrait};

use crate::db::entity::{audit, micros, moment, plain};

/// Writes an entry within the transaction of its action.
pub(crate) async fn append(tx: &DatabaseTransaction, entry: &NewAuditEntry) -> Result<(), DbErr> {
    let text = |text: &Option<String>| Set(text.as_deref().map(plain));
    let row = audit::ActiveModel {
        recorded_at: Set(micros(entry.at)),
        actor: text(&entry.actor),
        address: text(&entry.address),
        agent: text(&entry.agent),
        action: Set(entry.action.as_str().to_owned()),
        object: text(&entry.object),
        outcome: Set(entry.outcome.as_str().to_owned()),
        ..Default::default()
    };
    audit::Entity::insert(row)
        .exec_without_returning(tx)
        .await
        .map(drop)
}

/// Reads a row. Returns `None` for an action of a newer version.
pub(super) fn readable(row: audit::Model) -> Option<AuditEntry> {
    Some(AuditEntry {
        seq: row.seq,
        entry: NewAuditEntry {
            at: moment(row.recorded_at),
            actor: row.actor,
            address: row.address,
            agent: row.agent,
            action: AuditAction::named(&row.action)?,
            object: row.object,
            outcome: AuditOutcome::named(&row.outcome)?,
        },
    })
}
