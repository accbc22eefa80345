//! Rows of users that go with their accounts: all tables with an owner, except those whose rows go
//! with a thread.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_domain::accounts::{DeletedData, UserData};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::{ConnectionTrait, DatabaseTransaction, Statement};

use crate::db::connect::Database;
use crate::db::entity::plain;
use crate::db::tx::TxFuture;

/// One kind of rows, deleted in one transaction.
#[derive(Debug)]
struct Kind {
    name: &'static str,
    /// Statements with the id of the user as only value. The rows of the last one are counted.
    statements: &'static [&'static str],
}

/// Kinds that start runs or lead messages to the user.
const SOURCES: &[Kind] = &[
    Kind {
        name: "crons",
        statements: &["DELETE FROM crons WHERE user_id = $1"],
    },
    Kind {
        name: "scheduled_tasks",
        statements: &[
            "DELETE FROM scheduled_task_runs WHERE user_id = $1",
            "DELETE FROM scheduled_tasks WHERE user_id = $1",
        ],
    },
    Kind {
        name: "channel_connections",
        statements: &[
            "DELETE FROM channel_codes WHERE user_id = $1",
            "DELETE FROM channel_conversations WHERE user_id = $1",
            "DELETE FROM channel_connections WHERE user_id = $1",
        ],
    },
    Kind {
        name: "api_keys",
        statements: &["DELETE FROM api_keys WHERE user_id = $1"],
    },
];

/// Kinds that stay when all threads of the user are deleted.
const REST: &[Kind] = &[
    Kind {
        name: "feedback",
        statements: &["DELETE FROM feedback WHERE user_id = $1"],
    },
    Kind {
        name: "runs",
        statements: &[
            "DELETE FROM run_events WHERE user_id = $1",
            "DELETE FROM runs WHERE user_id = $1",
        ],
    },
    Kind {
        name: "model_usage",
        statements: &["DELETE FROM model_usage WHERE user_id = $1"],
    },
    Kind {
        name: "assistants",
        statements: &[
            "DELETE FROM assistant_versions WHERE assistant_id IN \
             (SELECT assistant_id FROM assistants WHERE user_id = $1)",
            "DELETE FROM assistants WHERE user_id = $1",
        ],
    },
    Kind {
        name: "flows",
        statements: &[
            "DELETE FROM flow_versions WHERE user_id = $1",
            "DELETE FROM flow_contents WHERE user_id = $1",
            "DELETE FROM flow_owners WHERE user_id = $1",
            "DELETE FROM flows WHERE user_id = $1",
        ],
    },
    Kind {
        name: "store_items",
        statements: &[
            "DELETE FROM store_vectors WHERE user_id = $1",
            "DELETE FROM store_items WHERE user_id = $1",
        ],
    },
    Kind {
        name: "memories",
        statements: &[
            "DELETE FROM memory_news WHERE user_id = $1",
            "DELETE FROM memories WHERE user_id = $1",
        ],
    },
    Kind {
        name: "idempotency_keys",
        statements: &["DELETE FROM request_keys WHERE user_id = $1"],
    },
    Kind {
        name: "thread_records",
        statements: &[
            "DELETE FROM thread_facts WHERE user_id = $1",
            "DELETE FROM deleted_threads WHERE user_id = $1",
        ],
    },
];

/// Unfinished runs of a user whom no server serves.
const ABANDONED: &Kind = &Kind {
    name: "ended_runs",
    statements: &[
        "UPDATE runs SET status = 'interrupted', owner = NULL, due_at = NULL \
         WHERE status IN ('pending', 'starting', 'running') AND (user_id = $1 \
         OR thread_id IN (SELECT thread_id FROM threads_meta WHERE user_id = $1))",
    ],
};

/// Rows of one kind over SQL.
#[derive(Debug)]
pub struct SqlUserRows {
    db: Database,
    kind: &'static Kind,
}

impl SqlUserRows {
    /// Returns the rows that start runs or lead messages to a user: to be deleted before the runs
    /// end.
    pub fn sources(db: &Database) -> Vec<Arc<dyn UserData>> {
        SOURCES.iter().map(|kind| Self::of(db, kind)).collect()
    }

    /// Returns the rows that stay when a user has no threads any more: to be deleted after them.
    pub fn rest(db: &Database) -> Vec<Arc<dyn UserData>> {
        REST.iter().map(|kind| Self::of(db, kind)).collect()
    }

    /// Returns the unfinished runs, which the deletion ends: only for a database that no server
    /// uses, because the process of a run does not learn of it.
    pub fn abandoned_runs(db: &Database) -> Arc<dyn UserData> {
        Self::of(db, ABANDONED)
    }

    fn of(db: &Database, kind: &'static Kind) -> Arc<dyn UserData> {
        let db = db.clone();
        Arc::new(Self { db, kind })
    }
}

#[async_trait]
impl UserData for SqlUserRows {
    async fn delete_all(&self, user: &str) -> Result<DeletedData, StoreError> {
        let work = (self.kind, plain(user));
        let count = self.db.writes().release(work, delete).await?;
        Ok(DeletedData {
            kind: self.kind.name.to_owned(),
            count,
        })
    }
}

fn delete<'a>(
    tx: &'a DatabaseTransaction,
    (kind, user): &'a (&'static Kind, String),
) -> TxFuture<'a, u64> {
    Box::pin(async move {
        let mut count = 0;
        for sql in kind.statements {
            let values = [user.as_str().into()];
            let statement = Statement::from_sql_and_values(tx.get_database_backend(), *sql, values);
            count = tx.execute_raw(statement).await?.rows_affected();
        }
        Ok(count)
    })
}

#[cfg(test)]
#[path = "user_rows_tests.rs"]
mod tests;
