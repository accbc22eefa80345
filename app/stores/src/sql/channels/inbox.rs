//! Inbox over SQL.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::channels::{
    Acceptance, Account, AccountClaim, ChannelStoreError, InboxBatch, InboxEnd, InboxFilter,
    InboxLimits, InboxMessage, InboxStore, NewOutgoing, Urgency,
};
use sea_orm::sea_query::{Expr, Func};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, EntityTrait, ExprTrait, QueryFilter,
    QueryOrder, QuerySelect, Select, Statement, UpdateMany,
};
use serde_json::Value;
use uuid::Uuid;

use super::SqlChannelStore;
use super::fence::{FencedWrite, account_values, check_accounts};
use super::inbox_accept::{PreparedBatch, accept};
use super::inbox_row::{parse_urgency, readable, urgency_text};
use super::outbox_row::insert_new;
use crate::db::entity::{channel_inbox, micros, moment, plain};
use crate::db::error::read;
use crate::db::json::json_text;
use crate::db::space::WriteClass;
use crate::db::statement_batch::StatementBatch;
use crate::db::tx::TxFuture;

/// Returns the query for the waiting rows of an account.
fn waiting_in(account: &Account) -> Select<channel_inbox::Entity> {
    channel_inbox::Entity::find()
        .filter(channel_inbox::is_waiting())
        .filter(channel_inbox::Column::Provider.eq(plain(&account.provider)))
        .filter(channel_inbox::Column::Account.eq(plain(&account.id)))
}

/// Returns an update of those of the rows that wait in the claimed account.
fn update_waiting(claim: &AccountClaim, ids: &[Uuid]) -> UpdateMany<channel_inbox::Entity> {
    let ids = ids.iter().map(Uuid::to_string);
    channel_inbox::Entity::update_many()
        .filter(channel_inbox::Column::InboxId.is_in(ids))
        .filter(channel_inbox::is_waiting())
        .filter(channel_inbox::Column::Provider.eq(plain(&claim.account.provider)))
        .filter(channel_inbox::Column::Account.eq(plain(&claim.account.id)))
}

const CURSOR: &str = "SELECT position FROM channel_cursors WHERE provider = $1 AND account = $2";

#[async_trait]
impl InboxStore for SqlChannelStore {
    async fn accept(
        &self,
        claim: &AccountClaim,
        batch: InboxBatch,
        limits: InboxLimits,
        at: DateTime<Utc>,
    ) -> Result<Vec<Acceptance>, ChannelStoreError> {
        let accounts = batch.messages.iter().map(|message| &message.key.account);
        check_accounts(claim, accounts)?;
        let batch = PreparedBatch::new(claim, batch, limits, at);
        self.db.writes().create(batch, accept).await?
    }

    async fn cursor(&self, account: &Account) -> Result<Option<String>, ChannelStoreError> {
        let statement = Statement::from_sql_and_values(
            self.db.reads().get_database_backend(),
            CURSOR,
            account_values(account),
        );
        let row = read(self.db.reads().query_one_raw(statement).await)?;
        let cursor = row.map(|row| row.try_get_by_index(0)).transpose();
        Ok(read(cursor)?)
    }

    async fn waiting_conversations(
        &self,
        account: &Account,
    ) -> Result<Vec<(String, Urgency)>, ChannelStoreError> {
        let groups = [
            channel_inbox::Column::Conversation,
            channel_inbox::Column::Urgency,
        ];
        let rows: Vec<(String, String)> = read(
            waiting_in(account)
                .select_only()
                .columns(groups)
                .group_by(groups[0])
                .group_by(groups[1])
                .order_by_asc(channel_inbox::Column::Seq.min())
                .into_tuple()
                .all(self.db.reads())
                .await,
        )?;
        let known =
            |(conversation, text): (String, String)| Some((conversation, parse_urgency(&text)?));
        Ok(rows.into_iter().filter_map(known).collect())
    }

    async fn waiting(
        &self,
        account: &Account,
        conversation: &str,
        urgency: Urgency,
        limit: u64,
    ) -> Result<Vec<InboxMessage>, ChannelStoreError> {
        let rows = waiting_in(account)
            .filter(channel_inbox::Column::Urgency.eq(urgency_text(urgency)))
            .filter(channel_inbox::Column::Conversation.eq(plain(conversation)))
            .order_by_asc(channel_inbox::Column::Seq)
            .limit(limit)
            .all(self.db.reads())
            .await;
        Ok(read(rows)?.into_iter().filter_map(readable).collect())
    }

    async fn begin(&self, claim: &AccountClaim, ids: &[Uuid]) -> Result<(), ChannelStoreError> {
        let claims = Expr::col(channel_inbox::Column::Claims).add(1);
        let update = update_waiting(claim, ids).col_expr(channel_inbox::Column::Claims, claims);
        self.change(claim, update).await
    }

    async fn save_progress(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        progress: Value,
    ) -> Result<(), ChannelStoreError> {
        let update = update_waiting(claim, &[id]).col_expr(
            channel_inbox::Column::ProgressJson,
            Expr::value(json_text(&progress)),
        );
        self.change(claim, update).await
    }

    async fn fail(
        &self,
        claim: &AccountClaim,
        ids: &[Uuid],
        note: &str,
        not_before: DateTime<Utc>,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        let since = Func::coalesce([
            Expr::col(channel_inbox::Column::FailedSince),
            Expr::value(micros(at)),
        ]);
        let failures = Expr::col(channel_inbox::Column::Failures).add(1);
        let not_before = Expr::value(micros(not_before));
        let update = update_waiting(claim, ids)
            .col_expr(channel_inbox::Column::Failures, failures)
            .col_expr(channel_inbox::Column::FailedSince, since.into())
            .col_expr(channel_inbox::Column::NotBefore, not_before)
            .col_expr(channel_inbox::Column::Note, Expr::value(plain(note)));
        self.change(claim, update).await
    }

    async fn end(
        &self,
        claim: &AccountClaim,
        ids: &[Uuid],
        end: InboxEnd,
        replies: Vec<NewOutgoing>,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        check_accounts(claim, replies.iter().map(|reply| &reply.account))?;
        let note = end.note.as_deref().map(plain);
        let update = update_waiting(claim, ids)
            .col_expr(
                channel_inbox::Column::State,
                Expr::value(end.state.as_str()),
            )
            .col_expr(channel_inbox::Column::Note, Expr::value(note))
            .col_expr(channel_inbox::Column::EndedAt, Expr::value(micros(at)));
        FencedWrite::new(claim)
            .update(update)
            .insert(insert_new(&replies, at))
            .run(self.db.writes(), WriteClass::Progress)
            .await
    }

    async fn list(&self, filter: &InboxFilter) -> Result<Vec<InboxMessage>, ChannelStoreError> {
        let mut select = channel_inbox::Entity::find();
        if let Some(provider) = &filter.provider {
            select = select.filter(channel_inbox::Column::Provider.eq(plain(provider)));
        }
        if let Some(state) = filter.state {
            select = select.filter(channel_inbox::Column::State.eq(state.as_str()));
        }
        let rows = select
            .order_by_desc(channel_inbox::Column::Seq)
            .limit(filter.limit)
            .all(self.db.reads())
            .await;
        Ok(read(rows)?.into_iter().filter_map(readable).collect())
    }

    async fn backlog(
        &self,
        account: &Account,
    ) -> Result<(u64, Option<DateTime<Utc>>), ChannelStoreError> {
        let found: Option<(i64, Option<i64>)> = read(
            waiting_in(account)
                .select_only()
                .expr(channel_inbox::Column::Seq.count())
                .expr(channel_inbox::Column::ReceivedAt.min())
                .into_tuple()
                .one(self.db.reads())
                .await,
        )?;
        let (count, oldest) = found.unwrap_or_default();
        Ok((count.unsigned_abs(), oldest.map(moment)))
    }

    async fn forget(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, ChannelStoreError> {
        let ended = channel_inbox::Column::EndedAt.lt(micros(before));
        let any = channel_inbox::Entity::find().filter(ended).limit(1);
        let any = any.select_only().column(channel_inbox::Column::Seq);
        // Avoids a write if there is none.
        if read(any.into_tuple::<i64>().one(self.db.reads()).await)?.is_none() {
            return Ok(0);
        }
        let work = (micros(before), i64::try_from(limit).unwrap_or(i64::MAX));
        self.db.writes().release(work, forget).await
    }
}

impl SqlChannelStore {
    async fn change(
        &self,
        claim: &AccountClaim,
        update: UpdateMany<channel_inbox::Entity>,
    ) -> Result<(), ChannelStoreError> {
        FencedWrite::new(claim)
            .update(update)
            .run(self.db.writes(), WriteClass::Progress)
            .await
    }
}

const FORGET: &str = "\
    DELETE FROM channel_inbox WHERE seq IN (\
        SELECT seq FROM channel_inbox WHERE ended_at IS NOT NULL AND ended_at < ? ORDER BY ended_at, seq LIMIT ?) \
    RETURNING 'gone'";

fn forget<'a>(
    tx: &'a DatabaseTransaction,
    (before, limit): &'a (i64, i64),
) -> TxFuture<'a, u64, ChannelStoreError> {
    Box::pin(async move {
        let mut statements = StatementBatch::new(tx);
        statements.add(FORGET, [(*before).into(), (*limit).into()]);
        Ok(statements.run(tx).await?.len() as u64)
    })
}
