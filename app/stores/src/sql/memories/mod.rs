//! User memory store over SQL.

mod prepared;
mod registered_update;

pub(crate) use registered_update::{add_update, insert_update, key, update_statement};

use std::collections::BTreeSet;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_core::ids::ThreadId;
use deerflow_runtime::runs::store::StoreError;
use deerflow_runtime::user_memory::{
    MemoryDocument, MemoryScope, MemoryUpdate, PendingUpdate, StoredMemory, UserMemoryStore,
};
use sea_orm::{
    ColumnTrait, DatabaseTransaction, DbErr, EntityTrait, QueryFilter, QueryResult, QuerySelect,
};

use crate::db::connect::Database;
use crate::db::entity::{memory, memory_news, micros, plain};
use crate::db::error::read;
use crate::db::json::{from_json, json_text};
use crate::db::statement_batch::StatementBatch;
use crate::db::tx::{Prepared, TxError, TxFuture};

/// User memory store over SQL.
#[derive(Debug, Clone)]
pub struct SqlMemoryStore {
    db: Database,
}

impl SqlMemoryStore {
    /// Creates a store over `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }

    /// Rejects a document of `bytes` that is larger than the stored one if the user has too many
    /// bytes. One that removes facts is always stored.
    async fn check_size(&self, scope: &MemoryScope, bytes: usize) -> Result<(), StoreError> {
        let Err(exceeded) = self.db.quota_check(Some(&scope.user)).await.size() else {
            return Ok(());
        };
        let stored = memory::Entity::find_by_id(key(scope))
            .one(self.db.reads())
            .await;
        let stored = read(stored)?.map_or(0, |row| row.document_json.len());
        if bytes > stored {
            return Err(exceeded.into());
        }
        Ok(())
    }

    async fn statements(
        &self,
        sql: &'static str,
        values: Vec<sea_orm::Value>,
    ) -> Result<Vec<QueryResult>, StoreError> {
        self.db.writes().run((sql, values), statements).await
    }

    /// Runs a statement that only releases or deletes, so it may use the last free space.
    async fn release(
        &self,
        sql: &'static str,
        values: Vec<sea_orm::Value>,
    ) -> Result<(), StoreError> {
        self.db
            .writes()
            .release((sql, values), statements)
            .await
            .map(drop)
    }
}

/// Inserts the first revision of a document; any other replaces the previous one.
const CREATE_DOCUMENT: &str = "\
    INSERT INTO memories (user_id, agent, document_json, revision, edits, updated_at) VALUES (?, ?, ?, 1, ?, ?) \
    ON CONFLICT (user_id, agent) DO NOTHING RETURNING 'written'";
const REPLACE_DOCUMENT: &str = "\
    UPDATE memories SET document_json = ?, revision = revision + 1, edits = edits + ?, updated_at = ? \
    WHERE user_id = ? AND agent = ? AND revision = ? RETURNING 'written'";
const CLAIM_PENDING: &str = "\
    UPDATE memory_news SET taken_until = ? WHERE (thread_id, user_id, agent) IN (\
        SELECT thread_id, user_id, agent FROM memory_news WHERE due_at <= ? AND (taken_until IS NULL OR taken_until <= ?) \
        ORDER BY due_at LIMIT ?) \
    AND due_at <= ? AND (taken_until IS NULL OR taken_until <= ?) \
    RETURNING 'taken', thread_id, user_id, agent, watermark, number, tries, due_at";
const COMPLETE_PENDING: &str = "\
    UPDATE memory_news SET watermark = ?, tries = 0, taken_until = NULL, due_at = CASE WHEN number = ? THEN NULL ELSE due_at END \
    WHERE thread_id = ? AND user_id = ? AND agent = ? RETURNING 'done'";
const RESCHEDULE_PENDING: &str = "\
    UPDATE memory_news SET tries = tries + 1, taken_until = NULL, due_at = ? \
    WHERE thread_id = ? AND user_id = ? AND agent = ? RETURNING 'rescheduled'";
const RELEASE_PENDING: &str = "\
    UPDATE memory_news SET taken_until = NULL WHERE thread_id = ? AND user_id = ? AND agent = ? RETURNING 'released'";
const EXPEDITE_PENDING: &str = "UPDATE memory_news SET due_at = ? WHERE thread_id = ? AND due_at IS NOT NULL RETURNING 'expedited'";
const DELETE_PENDING: &str = "DELETE FROM memory_news WHERE thread_id = ? RETURNING 'deleted'";

#[async_trait]
impl UserMemoryStore for SqlMemoryStore {
    async fn read(&self, scope: &MemoryScope) -> Result<Option<StoredMemory>, StoreError> {
        let key = key(scope);
        let row = match self.db.read_prepared(|db| prepared::row(db, &key)) {
            Some(Prepared::Done(row)) => row,
            _ => memory::Entity::find_by_id(key).one(self.db.reads()).await,
        };
        read(row.and_then(|row| row.map(stored).transpose()))
    }

    async fn agents(&self, user: &str) -> Result<Vec<String>, StoreError> {
        let user = plain(user);
        let documents = memory::Entity::find()
            .select_only()
            .column(memory::Column::Agent);
        let documents = documents
            .filter(memory::Column::UserId.eq(user.as_str()))
            .into_tuple::<String>()
            .all(self.db.reads())
            .await;
        let pending = memory_news::Entity::find()
            .select_only()
            .column(memory_news::Column::Agent)
            .distinct();
        let pending = pending
            .filter(memory_news::Column::UserId.eq(user.as_str()))
            .into_tuple::<String>()
            .all(self.db.reads())
            .await;
        let all: BTreeSet<String> = read(documents)?
            .into_iter()
            .chain(read(pending)?)
            .filter(|agent| !agent.is_empty())
            .collect();
        Ok(all.into_iter().collect())
    }

    async fn write(
        &self,
        scope: &MemoryScope,
        document: &MemoryDocument,
        edited: bool,
        at: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let text = json_text(document);
        self.check_size(scope, text.len()).await?;
        let (user, agent) = key(scope);
        let (text, edits, at) = (text.into(), i64::from(edited).into(), micros(at).into());
        let written = match document.revision {
            0 => {
                self.statements(
                    CREATE_DOCUMENT,
                    vec![user.into(), agent.into(), text, edits, at],
                )
                .await?
            }
            revision => {
                self.statements(
                    REPLACE_DOCUMENT,
                    vec![text, edits, at, user.into(), agent.into(), revision.into()],
                )
                .await?
            }
        };
        Ok(!written.is_empty())
    }

    async fn note(
        &self,
        scope: &MemoryScope,
        thread: &ThreadId,
        due: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let scope = scope.clone();
        let registered = (thread.clone(), MemoryUpdate { scope, due });
        self.db.writes().run(registered, register).await
    }

    async fn take(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<PendingUpdate>, StoreError> {
        let now = micros(now);
        // Avoids a write if no update is due.
        let due = memory_news::Entity::find()
            .filter(memory_news::Column::DueAt.lte(now))
            .limit(1);
        if read(due.one(self.db.reads()).await)?.is_none() {
            return Ok(Vec::new());
        }
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self
            .statements(
                CLAIM_PENDING,
                vec![
                    micros(until).into(),
                    now.into(),
                    now.into(),
                    limit.into(),
                    now.into(),
                    now.into(),
                ],
            )
            .await?;
        let mut claimed: Vec<(i64, PendingUpdate)> =
            read(rows.iter().map(pending).collect::<Result<_, DbErr>>())?;
        claimed.sort_by_key(|(due, _)| *due);
        Ok(claimed.into_iter().map(|(_, pending)| pending).collect())
    }

    async fn done(
        &self,
        pending: &PendingUpdate,
        watermark: Option<&str>,
    ) -> Result<(), StoreError> {
        let (user, agent) = key(&pending.scope);
        let watermark = watermark.map(plain);
        let values = vec![
            watermark.into(),
            pending.number.into(),
            pending.thread.as_str().into(),
            user.into(),
            agent.into(),
        ];
        self.statements(COMPLETE_PENDING, values).await.map(drop)
    }

    async fn again(&self, pending: &PendingUpdate, due: DateTime<Utc>) -> Result<(), StoreError> {
        let (user, agent) = key(&pending.scope);
        self.statements(
            RESCHEDULE_PENDING,
            vec![
                micros(due).into(),
                pending.thread.as_str().into(),
                user.into(),
                agent.into(),
            ],
        )
        .await
        .map(drop)
    }

    async fn give_back(&self, pending: &PendingUpdate) -> Result<(), StoreError> {
        let (user, agent) = key(&pending.scope);
        self.release(
            RELEASE_PENDING,
            vec![pending.thread.as_str().into(), user.into(), agent.into()],
        )
        .await
    }

    async fn hurry(&self, thread: &ThreadId, due: DateTime<Utc>) -> Result<(), StoreError> {
        self.statements(
            EXPEDITE_PENDING,
            vec![micros(due).into(), thread.as_str().into()],
        )
        .await
        .map(drop)
    }

    async fn forget_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.release(DELETE_PENDING, vec![thread.as_str().into()])
            .await
    }
}

fn register<'a>(
    tx: &'a DatabaseTransaction,
    (thread, update): &'a (ThreadId, MemoryUpdate),
) -> TxFuture<'a, ()> {
    Box::pin(async move {
        let mut statements = StatementBatch::new(tx);
        add_update(&mut statements, thread, update);
        Ok(statements.run(tx).await.map(drop)?)
    })
}

fn statements<'a>(
    tx: &'a DatabaseTransaction,
    (sql, values): &'a (&'static str, Vec<sea_orm::Value>),
) -> TxFuture<'a, Vec<QueryResult>> {
    Box::pin(run_one(tx, sql, values.clone()))
}

async fn run_one(
    tx: &DatabaseTransaction,
    sql: &'static str,
    values: Vec<sea_orm::Value>,
) -> Result<Vec<QueryResult>, TxError<StoreError>> {
    let mut statements = StatementBatch::new(tx);
    statements.add_values(sql, values);
    Ok(statements.run(tx).await?)
}

/// Deletes the pending updates of a thread.
pub(crate) async fn delete_pending_updates(
    tx: &DatabaseTransaction,
    thread: &ThreadId,
) -> Result<(), DbErr> {
    memory_news::Entity::delete_many()
        .filter(memory_news::Column::ThreadId.eq(thread.as_str()))
        .exec(tx)
        .await
        .map(drop)
}

fn stored(row: memory::Model) -> Result<StoredMemory, DbErr> {
    let document: MemoryDocument = from_json(&row.document_json).map_err(|reason| {
        DbErr::Type(format!(
            "the memory of user {} is damaged: {reason}",
            row.user_id
        ))
    })?;
    Ok(StoredMemory {
        document: MemoryDocument {
            revision: row.revision,
            ..document
        },
        edits: row.edits,
    })
}

fn pending(row: &QueryResult) -> Result<(i64, PendingUpdate), DbErr> {
    let thread: String = row.try_get_by_index(1)?;
    let agent: String = row.try_get_by_index(3)?;
    let pending = PendingUpdate {
        scope: MemoryScope {
            user: row.try_get_by_index(2)?,
            agent: Some(agent).filter(|agent| !agent.is_empty()),
        },
        thread: ThreadId::parse(thread).map_err(|error| DbErr::Type(error.to_string()))?,
        watermark: row.try_get_by_index(4)?,
        number: row.try_get_by_index(5)?,
        tries: row.try_get_by_index(6)?,
    };
    Ok((row.try_get_by_index(7)?, pending))
}
