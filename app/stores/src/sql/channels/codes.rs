//! Codes that connect an identity to a user, over SQL.

use deerflow_domain::channels::{
    ChannelStoreError, ConsumedCode, ExternalIdentity, MAX_PENDING_CODES, NewCode, PendingCode,
};
use sea_orm::{DatabaseTransaction, DbErr, EntityTrait};

use super::connection_row::record;
use crate::db::entity::{channel_connection, micros, plain};
use crate::db::json::json_text;
use crate::db::statement_batch::{StatementBatch, tagged};
use crate::db::text_lock::lock_text;
use crate::db::tx::TxFuture;

const DELETE_EXPIRED: &str = "DELETE FROM channel_codes WHERE expires_at <= ?";

const COUNT: &str =
    "SELECT 'pending', COUNT(*) FROM channel_codes WHERE user_id = ? AND provider = ?";

const INSERT: &str = "\
    INSERT INTO channel_codes (code_hash, user_id, provider, expires_at) VALUES (?, ?, ?, ?)";

/// Stores a code at a time, unless the user has too many.
pub(super) fn create<'a>(
    tx: &'a DatabaseTransaction,
    (code, at): &'a (NewCode, i64),
) -> TxFuture<'a, PendingCode, ChannelStoreError> {
    Box::pin(async move {
        let [hash, user, provider] = [&code.hash, &code.user_id, &code.provider].map(|t| plain(t));
        lock_text(tx, &json_text(&("channel codes", &user, &provider))).await?;
        let mut statements = StatementBatch::new(tx);
        statements.add(DELETE_EXPIRED, [(*at).into()]);
        statements.add(COUNT, [user.as_str().into(), provider.as_str().into()]);
        let rows = statements.run(tx).await?;
        let pending = tagged(&rows, "pending").map(|row| row.try_get_by_index::<i64>(1));
        let pending = pending.transpose()?.unwrap_or(0).unsigned_abs();
        if pending >= MAX_PENDING_CODES as u64 {
            return Ok(PendingCode::TooMany);
        }
        let mut statements = StatementBatch::new(tx);
        let end = micros(code.expires_at).into();
        statements.add(INSERT, [hash.into(), user.into(), provider.into(), end]);
        statements.run(tx).await?;
        Ok(PendingCode::Created)
    })
}

/// Code that a person sent.
pub(super) struct SentCode {
    pub(super) hash: String,
    pub(super) identity: ExternalIdentity,
    pub(super) names: (Option<String>, Option<String>),
    pub(super) at: i64,
}

const TAKE: &str = "\
    DELETE FROM channel_codes WHERE code_hash = ? AND provider = ? AND expires_at > ? RETURNING 'code', user_id";

const DEACTIVATE: &str = "\
    UPDATE channel_connections SET active = FALSE, updated_at = ? \
    WHERE provider = ? AND account = ? AND workspace = ? AND active AND connection_id <> ?";

const ACTIVATE: &str = "\
    INSERT INTO channel_connections (connection_id, user_id, provider, account, workspace, account_name, workspace_name, \
        active, metadata_json, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, TRUE, '{}', ?, ?) \
    ON CONFLICT (connection_id) DO UPDATE SET active = TRUE, updated_at = excluded.updated_at, \
        account_name = COALESCE(excluded.account_name, channel_connections.account_name), \
        workspace_name = COALESCE(excluded.workspace_name, channel_connections.workspace_name)";

/// Uses a code and connects its identity.
pub(super) fn consume<'a>(
    tx: &'a DatabaseTransaction,
    sent: &'a SentCode,
) -> TxFuture<'a, ConsumedCode, ChannelStoreError> {
    Box::pin(async move {
        lock_text(tx, &json_text(&("channel identity", &sent.identity))).await?;
        let identity = &sent.identity;
        let [provider, account, workspace] =
            [&identity.provider, &identity.account, &identity.workspace].map(|t| plain(t));
        let mut statements = StatementBatch::new(tx);
        let hash = plain(&sent.hash).into();
        statements.add(TAKE, [hash, provider.as_str().into(), sent.at.into()]);
        let rows = statements.run(tx).await?;
        let Some(code) = tagged(&rows, "code") else {
            return Ok(ConsumedCode::Invalid);
        };
        let user: String = code.try_get_by_index(1)?;
        let id = identity.connection_id(&user).to_string();
        let mut statements = StatementBatch::new(tx);
        let place = [&provider, &account, &workspace].map(|text| text.as_str().into());
        let mut values = vec![sent.at.into()];
        values.extend(place.clone());
        values.push(id.as_str().into());
        statements.add_values(DEACTIVATE, values);
        let mut values = vec![id.as_str().into(), user.into()];
        values.extend(place);
        let (account_name, workspace_name) = &sent.names;
        values.push(account_name.as_deref().map(plain).into());
        values.push(workspace_name.as_deref().map(plain).into());
        values.extend([sent.at.into(), sent.at.into()]);
        statements.add_values(ACTIVATE, values);
        statements.run(tx).await?;
        let stored = channel_connection::Entity::find_by_id(id)
            .one(tx)
            .await?
            .ok_or(DbErr::RecordNotInserted)?;
        Ok(ConsumedCode::Connected(Box::new(record(stored)?)))
    })
}
