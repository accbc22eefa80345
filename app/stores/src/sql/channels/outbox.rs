//! Outbox over SQL, and the conversations of single messages.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::channels::{
    Account, AccountClaim, ChannelStoreError, ClosedLane, NewOutgoing, OutboxStore, Outgoing,
    OutgoingFilter, OutgoingState,
};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, DatabaseTransaction, EntityTrait, ExprTrait, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect, Select, UpdateMany,
};
use serde_json::Value;
use uuid::Uuid;

use super::SqlChannelStore;
use super::fence::{FencedWrite, account_values, check_accounts};
use super::outbox_row::{insert_new, readable};
use crate::db::entity::{channel_link, channel_outbox, micros, plain};
use crate::db::error::read;
use crate::db::json::json_text;
use crate::db::space::WriteClass;
use crate::db::statement_batch::StatementBatch;
use crate::db::tx::TxFuture;

/// Returns the query for the pending rows of an account.
fn pending_in(account: &Account) -> Select<channel_outbox::Entity> {
    channel_outbox::Entity::find()
        .filter(channel_outbox::is_pending())
        .filter(channel_outbox::Column::Provider.eq(plain(&account.provider)))
        .filter(channel_outbox::Column::Account.eq(plain(&account.id)))
}

/// Returns an update of a row, if it is pending in the claimed account.
fn update_pending(claim: &AccountClaim, id: Uuid) -> UpdateMany<channel_outbox::Entity> {
    channel_outbox::Entity::update_many()
        .filter(channel_outbox::Column::OutboxId.eq(id.to_string()))
        .filter(channel_outbox::is_pending())
        .filter(channel_outbox::Column::Provider.eq(plain(&claim.account.provider)))
        .filter(channel_outbox::Column::Account.eq(plain(&claim.account.id)))
}

const LINK: &str = "\
    INSERT INTO channel_links (provider, account, chat, platform_id, conversation, recorded_at) VALUES (?, ?, ?, ?, ?, ?) \
    ON CONFLICT (provider, account, chat, platform_id) DO NOTHING";

const LINK_SENT: &str = "\
    INSERT INTO channel_links (provider, account, chat, platform_id, conversation, recorded_at) \
    SELECT provider, account, chat, ?, conversation, ? FROM channel_outbox \
    WHERE outbox_id = ? AND state = 'pending' AND provider = ? AND account = ? \
    ON CONFLICT (provider, account, chat, platform_id) DO NOTHING";

#[async_trait]
impl OutboxStore for SqlChannelStore {
    async fn enqueue(
        &self,
        claim: &AccountClaim,
        messages: Vec<NewOutgoing>,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        check_accounts(claim, messages.iter().map(|message| &message.account))?;
        FencedWrite::new(claim)
            .insert(insert_new(&messages, at))
            .run(self.db.writes(), WriteClass::Progress)
            .await
    }

    async fn pending_chats(&self, account: &Account) -> Result<Vec<String>, ChannelStoreError> {
        let chats = pending_in(account)
            .select_only()
            .column(channel_outbox::Column::Chat)
            .group_by(channel_outbox::Column::Chat)
            .order_by_asc(channel_outbox::Column::Seq.min())
            .into_tuple()
            .all(self.db.reads())
            .await;
        Ok(read(chats)?)
    }

    async fn next(
        &self,
        account: &Account,
        chat: &str,
    ) -> Result<Option<Outgoing>, ChannelStoreError> {
        let row = pending_in(account)
            .filter(channel_outbox::Column::Chat.eq(plain(chat)))
            .order_by_asc(channel_outbox::Column::Seq)
            .one(self.db.reads())
            .await;
        Ok(read(read(row)?.map(super::outbox_row::record).transpose())?)
    }

    async fn begin(&self, claim: &AccountClaim, id: Uuid) -> Result<(), ChannelStoreError> {
        let attempts = Expr::col(channel_outbox::Column::Attempts).add(1);
        let update = update_pending(claim, id).col_expr(channel_outbox::Column::Attempts, attempts);
        self.change_outgoing(claim, update, WriteClass::Progress)
            .await
    }

    async fn save_progress(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        progress: Value,
    ) -> Result<(), ChannelStoreError> {
        let update = update_pending(claim, id).col_expr(
            channel_outbox::Column::ProgressJson,
            Expr::value(json_text(&progress)),
        );
        self.change_outgoing(claim, update, WriteClass::Progress)
            .await
    }

    async fn retry(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        error: &str,
        not_before: DateTime<Utc>,
        counts: bool,
    ) -> Result<(), ChannelStoreError> {
        let mut update = update_pending(claim, id)
            .col_expr(channel_outbox::Column::Error, Expr::value(plain(error)))
            .col_expr(
                channel_outbox::Column::NotBefore,
                Expr::value(micros(not_before)),
            );
        if !counts {
            let attempts = || Expr::col(channel_outbox::Column::Attempts);
            let fewer = Expr::case(attempts().gt(0), attempts().sub(1)).finally(0);
            update = update.col_expr(channel_outbox::Column::Attempts, fewer.into());
        }
        self.change_outgoing(claim, update, WriteClass::Progress)
            .await
    }

    async fn sent(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        platform_ids: Vec<String>,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        let mut write = FencedWrite::new(claim);
        for platform_id in &platform_ids {
            let [provider, account] = account_values(&claim.account);
            let values = vec![
                plain(platform_id).into(),
                micros(at).into(),
                id.to_string().into(),
                provider,
                account,
            ];
            write = write.text(LINK_SENT, values);
        }
        let update = ended(claim, id, OutgoingState::Sent, None, at).col_expr(
            channel_outbox::Column::PlatformIdsJson,
            Expr::value(json_text(&platform_ids)),
        );
        write
            .update(update)
            .run(self.db.writes(), WriteClass::Release)
            .await
    }

    async fn bury(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        error: &str,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        let update = ended(claim, id, OutgoingState::Dead, Some(plain(error)), at);
        self.change_outgoing(claim, update, WriteClass::Release)
            .await
    }

    async fn conversation_of(
        &self,
        account: &Account,
        chat: &str,
        platform_id: &str,
    ) -> Result<Option<String>, ChannelStoreError> {
        let key = (
            plain(&account.provider),
            plain(&account.id),
            plain(chat),
            plain(platform_id),
        );
        let link = channel_link::Entity::find_by_id(key)
            .one(self.db.reads())
            .await;
        Ok(read(link)?.map(|link| link.conversation))
    }

    async fn link(
        &self,
        claim: &AccountClaim,
        chat: &str,
        platform_id: &str,
        conversation: &str,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        let [provider, account] = account_values(&claim.account);
        let texts = [chat, platform_id, conversation].map(|text| plain(text).into());
        let mut values = vec![provider, account];
        values.extend(texts);
        values.push(micros(at).into());
        FencedWrite::new(claim)
            .text(LINK, values)
            .run(self.db.writes(), WriteClass::Progress)
            .await
    }

    async fn close_lane(
        &self,
        claim: &AccountClaim,
        lane: &ClosedLane,
    ) -> Result<(), ChannelStoreError> {
        self.store_lane(claim, lane).await
    }

    async fn closed_lanes(
        &self,
        account: &Account,
        at: DateTime<Utc>,
    ) -> Result<Vec<ClosedLane>, ChannelStoreError> {
        self.read_lanes(account, at).await
    }

    async fn list(&self, filter: &OutgoingFilter) -> Result<Vec<Outgoing>, ChannelStoreError> {
        let mut select = channel_outbox::Entity::find();
        if let Some(provider) = &filter.provider {
            select = select.filter(channel_outbox::Column::Provider.eq(plain(provider)));
        }
        if let Some(state) = filter.state {
            select = select.filter(channel_outbox::Column::State.eq(state.as_str()));
        }
        let rows = select
            .order_by_desc(channel_outbox::Column::Seq)
            .limit(filter.limit)
            .all(self.db.reads())
            .await;
        Ok(read(rows)?.into_iter().filter_map(readable).collect())
    }

    async fn resend(&self, id: Uuid, at: DateTime<Utc>) -> Result<bool, ChannelStoreError> {
        let work = (id.to_string(), micros(at));
        self.db.writes().run(work, resend).await
    }

    async fn depth(&self, account: &Account) -> Result<u64, ChannelStoreError> {
        Ok(read(pending_in(account).count(self.db.reads()).await)?)
    }

    async fn forget(
        &self,
        before: DateTime<Utc>,
        links_before: DateTime<Utc>,
        limit: u64,
    ) -> Result<u64, ChannelStoreError> {
        let work = Forgetting {
            before: micros(before),
            links_before: micros(links_before),
            limit: i64::try_from(limit).unwrap_or(i64::MAX),
        };
        self.db.writes().release(work, forget).await
    }
}

impl SqlChannelStore {
    async fn change_outgoing(
        &self,
        claim: &AccountClaim,
        update: UpdateMany<channel_outbox::Entity>,
        class: WriteClass,
    ) -> Result<(), ChannelStoreError> {
        FencedWrite::new(claim)
            .update(update)
            .run(self.db.writes(), class)
            .await
    }
}

/// Returns an update that ends a pending row.
fn ended(
    claim: &AccountClaim,
    id: Uuid,
    state: OutgoingState,
    error: Option<String>,
    at: DateTime<Utc>,
) -> UpdateMany<channel_outbox::Entity> {
    update_pending(claim, id)
        .col_expr(channel_outbox::Column::State, Expr::value(state.as_str()))
        .col_expr(channel_outbox::Column::Error, Expr::value(error))
        .col_expr(channel_outbox::Column::EndedAt, Expr::value(micros(at)))
}

const RESEND: &str = "\
    UPDATE channel_outbox SET state = 'pending', attempts = 0, not_before = ?, created_at = ?, ended_at = NULL \
    WHERE outbox_id = ? AND state = 'dead' RETURNING 'pending'";

fn resend<'a>(
    tx: &'a DatabaseTransaction,
    (id, at): &'a (String, i64),
) -> TxFuture<'a, bool, ChannelStoreError> {
    Box::pin(async move {
        let mut statements = StatementBatch::new(tx);
        let values = [(*at).into(), (*at).into(), id.as_str().into()];
        statements.add(RESEND, values);
        Ok(!statements.run(tx).await?.is_empty())
    })
}

/// Ages of rows to delete, and their maximum number.
struct Forgetting {
    before: i64,
    links_before: i64,
    limit: i64,
}

const FORGET_ROWS: &str = "\
    DELETE FROM channel_outbox WHERE seq IN (\
        SELECT seq FROM channel_outbox WHERE ended_at IS NOT NULL AND ended_at < ? ORDER BY ended_at, seq LIMIT ?) \
    RETURNING 'gone'";

const FORGET_LINKS: &str = "\
    DELETE FROM channel_links WHERE (provider, account, chat, platform_id) IN (\
        SELECT l.provider, l.account, l.chat, l.platform_id FROM channel_links l \
        WHERE l.recorded_at < ? ORDER BY l.recorded_at LIMIT ?) \
    RETURNING 'gone'";

const FORGET_LANES: &str = "\
    DELETE FROM channel_lanes WHERE (provider, account, chat) IN (\
        SELECT l.provider, l.account, l.chat FROM channel_lanes l \
        WHERE l.closed_until < ? ORDER BY l.closed_until LIMIT ?) \
    RETURNING 'gone'";

fn forget<'a>(
    tx: &'a DatabaseTransaction,
    work: &'a Forgetting,
) -> TxFuture<'a, u64, ChannelStoreError> {
    Box::pin(async move {
        let mut deleted = 0;
        for (sql, before) in [
            (FORGET_ROWS, work.before),
            (FORGET_LINKS, work.links_before),
            (FORGET_LANES, work.before),
        ] {
            let mut statements = StatementBatch::new(tx);
            statements.add(sql, [before.into(), (work.limit - deleted).into()]);
            let rows = statements.run(tx).await?.len();
            deleted += i64::try_from(rows).unwrap_or(i64::MAX);
        }
        Ok(deleted.unsigned_abs())
    })
}
