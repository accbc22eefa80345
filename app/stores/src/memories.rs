//! Memories in the database.

use std::collections::BTreeSet;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use harness::ids::ThreadId;
use harness::memory::{MemoryDocument, MemoryScope, MemoryStore, Noted, Stored};
use harness::runtime::runs::store::StoreError;
use sea_orm::{
    ColumnTrait, DatabaseTransaction, DbErr, EntityTrait, QueryFilter, QueryResult, QuerySelect,
};

use crate::connect::Database;
use crate::entity::{memory, memory_news, micros, plain};
use crate::error::read;
use crate::runs::{from_json, json_text};
use crate::script::Script;
use crate::tx::TxError;

/// Memories over SQL.
#[derive(Debug, Clone)]
pub struct SqlMemoryStore {
    db: Database,
}

impl SqlMemoryStore {
    /// A view of `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }

    async fn script(
        &self,
        sql: &'static str,
        values: Vec<sea_orm::Value>,
    ) -> Result<Vec<QueryResult>, StoreError> {
        self.db.writes().run((sql, values), script).await
    }

    /// The same for what only ends something.
    async fn release(
        &self,
        sql: &'static str,
        values: Vec<sea_orm::Value>,
    ) -> Result<(), StoreError> {
        self.db
            .writes()
            .release((sql, values), script)
            .await
            .map(drop)
    }
}

/// Values of a key as they stand in the tables; the usual agent has no name.
fn key(scope: &MemoryScope) -> (String, String) {
    (
        plain(&scope.user),
        scope.agent.as_deref().map(plain).unwrap_or_default(),
    )
}

/// The first revision is written where there is no row, any other in the place of the one before.
const CREATE: &str = "\
    INSERT INTO memories (user_id, agent, document_json, revision, edits, updated_at) VALUES (?, ?, ?, 1, ?, ?) \
    ON CONFLICT (user_id, agent) DO NOTHING RETURNING 'written'";
const REPLACE: &str = "\
    UPDATE memories SET document_json = ?, revision = revision + 1, edits = edits + ?, updated_at = ? \
    WHERE user_id = ? AND agent = ? AND revision = ? RETURNING 'written'";
const NOTE: &str = "\
    INSERT INTO memory_news (thread_id, user_id, agent, number, tries, due_at) VALUES (?, ?, ?, 1, 0, ?) \
    ON CONFLICT (thread_id, user_id, agent) DO UPDATE SET number = memory_news.number + 1, tries = 0, due_at = excluded.due_at \
    RETURNING 'noted'";
const TAKE: &str = "\
    UPDATE memory_news SET taken_until = ? WHERE (thread_id, user_id, agent) IN (\
        SELECT thread_id, user_id, agent FROM memory_news WHERE due_at <= ? AND (taken_until IS NULL OR taken_until <= ?) \
        ORDER BY due_at LIMIT ?) \
    AND due_at <= ? AND (taken_until IS NULL OR taken_until <= ?) \
    RETURNING 'taken', thread_id, user_id, agent, watermark, number, tries, due_at";
const DONE: &str = "\
    UPDATE memory_news SET watermark = ?, tries = 0, taken_until = NULL, due_at = CASE WHEN number = ? THEN NULL ELSE due_at END \
    WHERE thread_id = ? AND user_id = ? AND agent = ? RETURNING 'done'";
const AGAIN: &str = "\
    UPDATE memory_news SET tries = tries + 1, taken_until = NULL, due_at = ? \
    WHERE thread_id = ? AND user_id = ? AND agent = ? RETURNING 'again'";
const GIVE_BACK: &str = "\
    UPDATE memory_news SET taken_until = NULL WHERE thread_id = ? AND user_id = ? AND agent = ? RETURNING 'given back'";
const HURRY: &str = "UPDATE memory_news SET due_at = ? WHERE thread_id = ? AND due_at IS NOT NULL RETURNING 'hurried'";
const FORGET: &str = "DELETE FROM memory_news WHERE thread_id = ? RETURNING 'forgotten'";

#[async_trait]
impl MemoryStore for SqlMemoryStore {
    async fn read(&self, scope: &MemoryScope) -> Result<Option<Stored>, StoreError> {
        // Every run reads it. Of a primary key there is one row; a limit would have SQLite plan the statement anew at each use.
        let row = memory::Entity::find_by_id(key(scope))
            .all(self.db.reads())
            .await
            .map(|mut rows| rows.pop());
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
        let news = memory_news::Entity::find()
            .select_only()
            .column(memory_news::Column::Agent)
            .distinct();
        let news = news
            .filter(memory_news::Column::UserId.eq(user.as_str()))
            .into_tuple::<String>()
            .all(self.db.reads())
            .await;
        let all: BTreeSet<String> = read(documents)?
            .into_iter()
            .chain(read(news)?)
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
        let (user, agent) = key(scope);
        let (text, edits, at) = (
            json_text(document).into(),
            i64::from(edited).into(),
            micros(at).into(),
        );
        let written = match document.revision {
            0 => {
                self.script(CREATE, vec![user.into(), agent.into(), text, edits, at])
                    .await?
            }
            revision => {
                self.script(
                    REPLACE,
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
        let (user, agent) = key(scope);
        self.script(
            NOTE,
            vec![
                thread.as_str().into(),
                user.into(),
                agent.into(),
                micros(due).into(),
            ],
        )
        .await
        .map(drop)
    }

    async fn take(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        most: usize,
    ) -> Result<Vec<Noted>, StoreError> {
        let now = micros(now);
        // Nothing is written while there is nothing to take.
        let due = memory_news::Entity::find()
            .filter(memory_news::Column::DueAt.lte(now))
            .limit(1);
        if read(due.one(self.db.reads()).await)?.is_none() {
            return Ok(Vec::new());
        }
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = self
            .script(
                TAKE,
                vec![
                    micros(until).into(),
                    now.into(),
                    now.into(),
                    most.into(),
                    now.into(),
                    now.into(),
                ],
            )
            .await?;
        let mut taken: Vec<(i64, Noted)> =
            read(rows.iter().map(noted).collect::<Result<_, DbErr>>())?;
        taken.sort_by_key(|(due, _)| *due);
        Ok(taken.into_iter().map(|(_, noted)| noted).collect())
    }

    async fn done(&self, noted: &Noted, watermark: Option<&str>) -> Result<(), StoreError> {
        let (user, agent) = key(&noted.scope);
        let watermark = watermark.map(plain);
        let values = vec![
            watermark.into(),
            noted.number.into(),
            noted.thread.as_str().into(),
            user.into(),
            agent.into(),
        ];
        self.script(DONE, values).await.map(drop)
    }

    async fn again(&self, noted: &Noted, due: DateTime<Utc>) -> Result<(), StoreError> {
        let (user, agent) = key(&noted.scope);
        self.script(
            AGAIN,
            vec![
                micros(due).into(),
                noted.thread.as_str().into(),
                user.into(),
                agent.into(),
            ],
        )
        .await
        .map(drop)
    }

    async fn give_back(&self, noted: &Noted) -> Result<(), StoreError> {
        let (user, agent) = key(&noted.scope);
        self.release(
            GIVE_BACK,
            vec![noted.thread.as_str().into(), user.into(), agent.into()],
        )
        .await
    }

    async fn hurry(&self, thread: &ThreadId, due: DateTime<Utc>) -> Result<(), StoreError> {
        self.script(HURRY, vec![micros(due).into(), thread.as_str().into()])
            .await
            .map(drop)
    }

    async fn forget_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.release(FORGET, vec![thread.as_str().into()]).await
    }
}

type Done<'a, T> = BoxFuture<'a, Result<T, TxError<StoreError>>>;

fn script<'a>(
    tx: &'a DatabaseTransaction,
    (sql, values): &'a (&'static str, Vec<sea_orm::Value>),
) -> Done<'a, Vec<QueryResult>> {
    Box::pin(async move {
        let mut script = Script::new(tx);
        script.add_values(sql, values.clone());
        Ok(script.run(tx).await?)
    })
}

/// Removes what is known of a thread's news.
pub(crate) async fn forget_news_of(
    tx: &DatabaseTransaction,
    thread: &ThreadId,
) -> Result<(), DbErr> {
    memory_news::Entity::delete_many()
        .filter(memory_news::Column::ThreadId.eq(thread.as_str()))
        .exec(tx)
        .await
        .map(drop)
}

fn stored(row: memory::Model) -> Result<Stored, DbErr> {
    let document: MemoryDocument = from_json(&row.document_json).map_err(|reason| {
        DbErr::Type(format!(
            "the memory of {} is damaged: {reason}",
            row.user_id
        ))
    })?;
    Ok(Stored {
        document: MemoryDocument {
            revision: row.revision,
            ..document
        },
        edits: row.edits,
    })
}

fn noted(row: &QueryResult) -> Result<(i64, Noted), DbErr> {
    let thread: String = row.try_get_by_index(1)?;
    let agent: String = row.try_get_by_index(3)?;
    let noted = Noted {
        scope: MemoryScope {
            user: row.try_get_by_index(2)?,
            agent: Some(agent).filter(|agent| !agent.is_empty()),
        },
        thread: ThreadId::parse(thread).map_err(|error| DbErr::Type(error.to_string()))?,
        watermark: row.try_get_by_index(4)?,
        number: row.try_get_by_index(5)?,
        tries: row.try_get_by_index(6)?,
    };
    Ok((row.try_get_by_index(7)?, noted))
}
