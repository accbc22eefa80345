//! Acceptance of messages: one transaction that reads the load of the inbox, and writes.

use chrono::{DateTime, Utc};
use deerflow_domain::channels::{
    Acceptance, AccountClaim, ChannelStoreError, InboxBatch, InboxLimits, InboxLoad,
    NewInboxMessage, Urgency,
};
use sea_orm::sea_query::{Expr, Query, SelectStatement};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, ExprTrait, QueryResult,
    QueryTrait,
};
use serde_json::Value;
use uuid::Uuid;

use super::fence::{LeaseLock, account_values, add_fence, is_held};
use super::inbox_row::{new_row, urgency_text};
use crate::db::entity::{channel_inbox, micros, plain};
use crate::db::statement_batch::{StatementBatch, all_tagged, tagged};
use crate::db::tx::TxFuture;

/// A batch in its stored form, so that the writer does not serialize.
pub(super) struct PreparedBatch {
    claim: AccountClaim,
    /// Messages without their events.
    messages: Vec<NewInboxMessage>,
    rows: Vec<channel_inbox::ActiveModel>,
    cursor: Option<String>,
    limits: InboxLimits,
    at: i64,
}

impl PreparedBatch {
    /// Prepares a batch.
    pub(super) fn new(
        claim: &AccountClaim,
        batch: InboxBatch,
        limits: InboxLimits,
        at: DateTime<Utc>,
    ) -> Self {
        let rows = batch.messages.iter().map(|message| new_row(message, at));
        let rows = rows.collect();
        let messages = batch.messages.into_iter().map(|message| NewInboxMessage {
            conversation: plain(&message.conversation),
            event: Value::Null,
            ..message
        });
        Self {
            claim: claim.clone(),
            rows,
            messages: messages.collect(),
            cursor: batch.cursor.as_deref().map(plain),
            limits,
            at: micros(at),
        }
    }
}

/// Outcome of an acceptance. A refusal has written nothing, so it does not roll back the writes of
/// others that share the transaction.
pub(super) type AcceptOutcome = Result<Vec<Acceptance>, ChannelStoreError>;

/// Stores the new messages of a batch, and its cursor.
pub(super) fn accept<'a>(
    tx: &'a DatabaseTransaction,
    batch: &'a PreparedBatch,
) -> TxFuture<'a, AcceptOutcome, ChannelStoreError> {
    Box::pin(async move {
        let mut statements = StatementBatch::new(tx);
        // The exclusive lock serializes the acceptances of an account: limits count rows, which no
        // row lock protects, and positions become visible in their order.
        let backend = tx.get_database_backend();
        add_fence(&mut statements, backend, &batch.claim, LeaseLock::Exclusive);
        add_load(&mut statements, batch);
        let rows = statements.run(tx).await?;
        if !is_held(&rows) {
            return Ok(Err(ChannelStoreError::Fenced));
        }
        let accepted = match load(&rows)?.admit(&batch.messages, batch.limits) {
            Ok(accepted) => accepted,
            Err(refusal) => return Ok(Err(refusal)),
        };
        write(tx, batch, &accepted).await?;
        Ok(Ok(accepted))
    })
}

fn add_load(statements: &mut StatementBatch, batch: &PreparedBatch) {
    if batch.messages.is_empty() {
        return;
    }
    let ids = batch.messages.iter().map(|message| message.key.id());
    let known = Query::select()
        .expr(Expr::val("known"))
        .column(channel_inbox::Column::InboxId)
        .from(channel_inbox::Entity)
        .and_where(channel_inbox::Column::InboxId.is_in(ids.map(|id| id.to_string())))
        .take();
    statements.add_built(&known);
    let mut conversations: Vec<&str> = batch
        .messages
        .iter()
        .filter(|message| message.urgency == Urgency::InOrder)
        .map(|message| message.conversation.as_str())
        .collect();
    if conversations.is_empty() {
        return;
    }
    conversations.sort_unstable();
    conversations.dedup();
    statements.add_built(&count_waiting(batch, "waiting"));
    let by_conversation = count_waiting(batch, "conversation")
        .column(channel_inbox::Column::Conversation)
        .and_where(channel_inbox::Column::Conversation.is_in(conversations))
        .group_by_col(channel_inbox::Column::Conversation)
        .take();
    statements.add_built(&by_conversation);
}

/// Returns a query of the number of waiting messages of the account that are not urgent.
fn count_waiting(batch: &PreparedBatch, tag: &'static str) -> SelectStatement {
    let [provider, account] = account_values(&batch.claim.account);
    Query::select()
        .expr(Expr::val(tag))
        .expr(Expr::col(channel_inbox::Column::Seq).count())
        .from(channel_inbox::Entity)
        .and_where(channel_inbox::is_waiting())
        .and_where(channel_inbox::Column::Provider.eq(provider))
        .and_where(channel_inbox::Column::Account.eq(account))
        .and_where(channel_inbox::Column::Urgency.eq(urgency_text(Urgency::InOrder)))
        .take()
}

fn load(rows: &[QueryResult]) -> Result<InboxLoad, DbErr> {
    let count = |row: &QueryResult| row.try_get_by_index::<i64>(1).map(i64::unsigned_abs);
    let mut load = InboxLoad::default();
    for row in all_tagged(rows, "known") {
        let id: String = row.try_get_by_index(1)?;
        load.known.extend(Uuid::parse_str(&id).inspect_err(|error| {
            tracing::error!(id, %error, "the id of an inbox row is damaged");
        }));
    }
    load.waiting = tagged(rows, "waiting").map(count).transpose()?.unwrap_or(0);
    for row in all_tagged(rows, "conversation") {
        load.by_conversation
            .insert(row.try_get_by_index(2)?, count(row)?);
    }
    Ok(load)
}

const SET_CURSOR: &str = "\
    INSERT INTO channel_cursors (provider, account, position, updated_at) VALUES (?, ?, ?, ?) \
    ON CONFLICT (provider, account) DO UPDATE SET position = excluded.position, updated_at = excluded.updated_at";

async fn write(
    tx: &DatabaseTransaction,
    batch: &PreparedBatch,
    accepted: &[Acceptance],
) -> Result<(), DbErr> {
    let mut statements = StatementBatch::new(tx);
    let stored: Vec<_> = batch
        .rows
        .iter()
        .zip(accepted)
        .filter(|(_, acceptance)| **acceptance == Acceptance::Stored)
        .map(|(row, _)| row.clone())
        .collect();
    if !stored.is_empty() {
        let insert = channel_inbox::Entity::insert_many(stored).into_query();
        statements.add_built(&insert);
    }
    if let Some(cursor) = &batch.cursor {
        let [provider, account] = account_values(&batch.claim.account);
        let values = [provider, account, cursor.as_str().into(), batch.at.into()];
        statements.add(SET_CURSOR, values);
    }
    statements.run(tx).await.map(drop)
}
