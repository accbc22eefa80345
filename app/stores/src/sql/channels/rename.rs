//! Change of a chat's id over SQL.

use deerflow_domain::channels::{AccountClaim, ChannelStoreError, renamed_key};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, QueryFilter, QuerySelect,
};

use super::fence::{LeaseLock, account_values, add_fence, is_held};
use crate::db::entity::{channel_conversation, channel_inbox, channel_outbox, plain};
use crate::db::statement_batch::{StatementBatch, tagged};
use crate::db::tx::{TxError, TxFuture};

/// New id of a chat.
pub(super) struct Rename {
    pub(super) claim: AccountClaim,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) at: i64,
}

const MOVE: &str = "\
    UPDATE channel_conversations SET conversation_key = ?, chat = ?, updated_at = ? \
    WHERE provider = ? AND account = ? AND conversation_key = ? AND chat = ? AND NOT EXISTS (\
        SELECT 1 FROM channel_conversations o WHERE o.provider = channel_conversations.provider \
            AND o.account = channel_conversations.account AND o.conversation_key = ? \
            AND o.conversation_key <> channel_conversations.conversation_key) \
    RETURNING 'moved'";

const MOVE_LINKS: &str = "\
    UPDATE channel_links SET chat = ?, conversation = ? \
    WHERE provider = ? AND account = ? AND chat = ? AND conversation = ? AND NOT EXISTS (\
        SELECT 1 FROM channel_links o WHERE o.provider = channel_links.provider \
            AND o.account = channel_links.account AND o.chat = ? AND o.platform_id = channel_links.platform_id)";

const DROP_LINKS: &str = "\
    DELETE FROM channel_links WHERE provider = ? AND account = ? AND chat = ? AND conversation = ?";

pub(super) fn rename_chat<'a>(
    tx: &'a DatabaseTransaction,
    rename: &'a Rename,
) -> TxFuture<'a, (), ChannelStoreError> {
    Box::pin(async move {
        let mut statements = StatementBatch::new(tx);
        let backend = tx.get_database_backend();
        add_fence(
            &mut statements,
            backend,
            &rename.claim,
            LeaseLock::Exclusive,
        );
        if !is_held(&statements.run(tx).await?) {
            return Err(TxError::Refused(ChannelStoreError::Fenced));
        }
        let Rename { claim, from, .. } = rename;
        let keys: Vec<String> = channel_conversation::Entity::find()
            .select_only()
            .column(channel_conversation::Column::ConversationKey)
            .filter(channel_conversation::Column::Provider.eq(plain(&claim.account.provider)))
            .filter(channel_conversation::Column::Account.eq(plain(&claim.account.id)))
            .filter(channel_conversation::Column::Chat.eq(from.as_str()))
            .into_tuple()
            .all(tx)
            .await?;
        for key in keys {
            move_conversation(tx, rename, &key).await?;
        }
        move_waiting(tx, rename).await?;
        Ok(move_unsent(tx, rename).await?)
    })
}

const MOVE_WAITING: &str = "\
    UPDATE channel_inbox SET chat = ?, conversation = ? \
    WHERE state = 'waiting' AND claims = 0 AND provider = ? AND account = ? AND chat = ? AND conversation = ?";

/// Moves the waiting messages of the chat that were never begun.
async fn move_waiting(tx: &DatabaseTransaction, rename: &Rename) -> Result<(), DbErr> {
    let [provider, account] = account_values(&rename.claim.account);
    let conversations = channel_inbox::Entity::find()
        .select_only()
        .column(channel_inbox::Column::Conversation)
        .filter(channel_inbox::is_waiting())
        .filter(channel_inbox::Column::Provider.eq(provider))
        .filter(channel_inbox::Column::Account.eq(account))
        .filter(channel_inbox::Column::Chat.eq(rename.from.as_str()))
        .distinct()
        .into_tuple()
        .all(tx)
        .await?;
    move_messages(tx, rename, conversations, MOVE_WAITING).await
}

const MOVE_UNSENT: &str = "\
    UPDATE channel_outbox SET chat = ?, conversation = ? \
    WHERE state <> 'sent' AND provider = ? AND account = ? AND chat = ? AND conversation = ?";

/// Moves the messages to the chat that were not sent, dead letters too.
async fn move_unsent(tx: &DatabaseTransaction, rename: &Rename) -> Result<(), DbErr> {
    let [provider, account] = account_values(&rename.claim.account);
    let conversations = channel_outbox::Entity::find()
        .select_only()
        .column(channel_outbox::Column::Conversation)
        .filter(channel_outbox::Column::State.ne("sent"))
        .filter(channel_outbox::Column::Provider.eq(provider))
        .filter(channel_outbox::Column::Account.eq(account))
        .filter(channel_outbox::Column::Chat.eq(rename.from.as_str()))
        .distinct()
        .into_tuple()
        .all(tx)
        .await?;
    move_messages(tx, rename, conversations, MOVE_UNSENT).await
}

/// Runs a statement that moves messages, for each of their conversations.
async fn move_messages(
    tx: &DatabaseTransaction,
    rename: &Rename,
    conversations: Vec<String>,
    statement: &'static str,
) -> Result<(), DbErr> {
    let (from, to) = (rename.from.as_str(), rename.to.as_str());
    let [provider, account] = account_values(&rename.claim.account);
    let mut statements = StatementBatch::new(tx);
    for conversation in conversations {
        let values = [
            to.into(),
            renamed_key(&conversation, from, to).into(),
            provider.clone(),
            account.clone(),
            from.into(),
            conversation.into(),
        ];
        statements.add(statement, values);
    }
    statements.run(tx).await.map(drop)
}

async fn move_conversation(
    tx: &DatabaseTransaction,
    rename: &Rename,
    key: &str,
) -> Result<(), DbErr> {
    let [provider, account] = account_values(&rename.claim.account);
    let (from, to) = (rename.from.as_str(), rename.to.as_str());
    let new_key = renamed_key(key, from, to);
    let mut statements = StatementBatch::new(tx);
    statements.add(
        MOVE,
        [
            new_key.as_str().into(),
            to.into(),
            rename.at.into(),
            provider.clone(),
            account.clone(),
            key.into(),
            from.into(),
            new_key.as_str().into(),
        ],
    );
    if tagged(&statements.run(tx).await?, "moved").is_none() {
        return Ok(());
    }
    let mut statements = StatementBatch::new(tx);
    statements.add(
        MOVE_LINKS,
        [
            to.into(),
            new_key.as_str().into(),
            provider.clone(),
            account.clone(),
            from.into(),
            key.into(),
            to.into(),
        ],
    );
    if from != to {
        statements.add(DROP_LINKS, [provider, account, from.into(), key.into()]);
    }
    statements.run(tx).await.map(drop)
}
