//! Conversations over SQL.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_core::ids::ThreadId;
use deerflow_domain::channels::{
    Account, AccountClaim, ChannelStoreError, Conversation, ConversationStore,
};
use sea_orm::sea_query::{Expr, OnConflict};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel,
    QueryFilter, QueryTrait,
};

use super::SqlChannelStore;
use super::fence::{FencedWrite, LeaseLock, add_fence, check_accounts, is_held};
use super::rename::{Rename, rename_chat};
use crate::db::entity::{channel_conversation, micros, moment, plain};
use crate::db::error::read;
use crate::db::json::{from_json, json_text};
use crate::db::space::WriteClass;
use crate::db::statement_batch::StatementBatch;
use crate::db::tx::{TxError, TxFuture};

#[async_trait]
impl ConversationStore for SqlChannelStore {
    async fn find(
        &self,
        account: &Account,
        key: &str,
    ) -> Result<Option<Conversation>, ChannelStoreError> {
        let key = (plain(&account.provider), plain(&account.id), plain(key));
        let row = channel_conversation::Entity::find_by_id(key)
            .one(self.db.reads())
            .await;
        Ok(read(read(row)?.map(record).transpose())?)
    }

    async fn create(
        &self,
        claim: &AccountClaim,
        conversation: Conversation,
    ) -> Result<Conversation, ChannelStoreError> {
        check_accounts(claim, [&conversation.account])?;
        let creation = (claim.clone(), new_row(&conversation));
        self.db.writes().run(creation, create).await
    }

    async fn update(
        &self,
        claim: &AccountClaim,
        conversation: &Conversation,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        use channel_conversation::Column;
        check_accounts(claim, [&conversation.account])?;
        let row = new_row(conversation);
        let update = channel_conversation::Entity::update_many()
            .filter(Column::Provider.eq(row.provider))
            .filter(Column::Account.eq(row.account))
            .filter(Column::ConversationKey.eq(row.conversation_key))
            .col_expr(Column::ThreadId, Expr::value(row.thread_id))
            .col_expr(Column::UserId, Expr::value(row.user_id))
            .col_expr(Column::OptionsJson, Expr::value(row.options_json))
            .col_expr(Column::QuestionJson, Expr::value(row.question_json))
            .col_expr(Column::UpdatedAt, Expr::value(micros(at)));
        FencedWrite::new(claim)
            .update(update)
            .run(self.db.writes(), WriteClass::Progress)
            .await
    }

    async fn rename_chat(
        &self,
        claim: &AccountClaim,
        from: &str,
        to: &str,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        let rename = Rename {
            claim: claim.clone(),
            from: plain(from),
            to: plain(to),
            at: micros(at),
        };
        self.db.writes().run(rename, rename_chat).await
    }

    async fn import(&self, conversations: Vec<Conversation>) -> Result<u64, ChannelStoreError> {
        let rows = Imported(conversations.iter().map(new_row).collect());
        self.db.writes().create(rows, import).await
    }
}

fn if_new() -> OnConflict {
    OnConflict::columns([
        channel_conversation::Column::Provider,
        channel_conversation::Column::Account,
        channel_conversation::Column::ConversationKey,
    ])
    .do_nothing()
    .to_owned()
}

fn create<'a>(
    tx: &'a DatabaseTransaction,
    (claim, row): &'a (AccountClaim, channel_conversation::Model),
) -> TxFuture<'a, Conversation, ChannelStoreError> {
    Box::pin(async move {
        let mut statements = StatementBatch::new(tx);
        let backend = tx.get_database_backend();
        add_fence(&mut statements, backend, claim, LeaseLock::Shared);
        let mut insert =
            channel_conversation::Entity::insert(row.clone().into_active_model()).into_query();
        statements.add_built(insert.on_conflict(if_new()));
        if !is_held(&statements.run(tx).await?) {
            return Err(TxError::Refused(ChannelStoreError::Fenced));
        }
        let key = (
            row.provider.clone(),
            row.account.clone(),
            row.conversation_key.clone(),
        );
        let stored = channel_conversation::Entity::find_by_id(key)
            .one(tx)
            .await?
            .ok_or(DbErr::RecordNotInserted)?;
        Ok(record(stored)?)
    })
}

/// Rows per statement, far below the value limits of both databases.
const ROWS_PER_IMPORT: usize = 500;

/// Rows of another installation.
struct Imported(Vec<channel_conversation::Model>);

fn import<'a>(
    tx: &'a DatabaseTransaction,
    Imported(rows): &'a Imported,
) -> TxFuture<'a, u64, ChannelStoreError> {
    Box::pin(async move {
        let mut imported = 0;
        for part in rows.chunks(ROWS_PER_IMPORT) {
            let part = part.iter().cloned().map(IntoActiveModel::into_active_model);
            imported += channel_conversation::Entity::insert_many(part)
                .on_conflict(if_new())
                .exec_without_returning(tx)
                .await?;
        }
        Ok(imported)
    })
}

fn new_row(conversation: &Conversation) -> channel_conversation::Model {
    channel_conversation::Model {
        provider: plain(&conversation.account.provider),
        account: plain(&conversation.account.id),
        conversation_key: plain(&conversation.key),
        chat: plain(&conversation.chat),
        topic: conversation.topic.as_deref().map(plain),
        thread_id: conversation.thread_id.to_string(),
        user_id: plain(&conversation.user_id),
        options_json: json_text(&conversation.options),
        question_json: conversation.question.as_ref().map(json_text),
        created_at: micros(conversation.created_at),
        updated_at: micros(conversation.updated_at),
    }
}

fn record(row: channel_conversation::Model) -> Result<Conversation, DbErr> {
    let key = row.conversation_key.clone();
    let read = || -> Result<Conversation, String> {
        let question = row.question_json.as_deref().map(from_json);
        Ok(Conversation {
            account: Account::new(row.provider, row.account),
            key: row.conversation_key,
            chat: row.chat,
            topic: row.topic,
            thread_id: ThreadId::parse(row.thread_id).map_err(|error| error.to_string())?,
            user_id: row.user_id,
            options: from_json(&row.options_json)?,
            question: question.transpose()?,
            created_at: moment(row.created_at),
            updated_at: moment(row.updated_at),
        })
    };
    read().map_err(|reason| DbErr::Type(format!("conversation {key} is damaged: {reason}")))
}
