//! Trial writes that check that the stores can be written: a transaction in the database, a file in
//! a folder.

use std::path::PathBuf;

use async_trait::async_trait;
use deerflow_domain::readiness::{NotReady, ReadinessProbe, StoredFile};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, Statement, TransactionTrait};

use crate::db::connect::Database;
use crate::db::space::WriteClass;
use crate::db::tx::{TxError, TxFuture};
use crate::files::trial_file::{reason, write_trial};

/// Probes a database with a transaction that leaves no data and is flushed like any other.
#[derive(Debug, Clone)]
pub struct DatabaseReadiness {
    db: Database,
    row: String,
}

impl DatabaseReadiness {
    /// Probes `db` with a row that is named after `process`, which must be unique per process.
    pub fn new(db: Database, process: &str) -> Self {
        Self {
            db,
            row: format!("probe-{process}"),
        }
    }
}

#[async_trait]
impl ReadinessProbe for DatabaseReadiness {
    fn name(&self) -> &'static str {
        "database"
    }

    async fn probe(&self) -> Result<(), NotReady> {
        let writes = self.db.writes();
        let was_full = writes.was_full();
        // Runs as a creation: other classes may use the last free space, so their success would not
        // show that creations succeed.
        writes
            .run_as(
                WriteClass::Creation,
                TrialWrite {
                    row: self.row.clone(),
                    takes_space: was_full,
                },
                trial,
            )
            .await?;
        if was_full {
            writes.set_was_full(false);
        }
        Ok(())
    }

    fn is_short_of_space(&self) -> bool {
        self.db.writes().is_low()
    }
}

struct TrialWrite {
    row: String,
    /// `true` if the write must allocate space: a small write fits into the WAL of a full database.
    takes_space: bool,
}

/// Inserts a row and deletes it in the same transaction.
fn trial<'a>(tx: &'a DatabaseTransaction, trial: &'a TrialWrite) -> TxFuture<'a, (), NotReady> {
    Box::pin(async move {
        let backend = tx.get_database_backend();
        if trial.takes_space {
            take_space(tx, &trial.row).await?;
        }
        for sql in [
            "INSERT INTO nodes (node_id, since, lease_until) VALUES ($1, 0, 0)",
            "DELETE FROM nodes WHERE node_id = $1",
        ] {
            tx.execute_raw(Statement::from_sql_and_values(
                backend,
                sql,
                [trial.row.as_str().into()],
            ))
            .await?;
        }
        Ok(())
    })
}

/// Grows the database by about a megabyte, and rolls that back.
async fn take_space(tx: &DatabaseTransaction, row: &str) -> Result<(), TxError<NotReady>> {
    let table: String = row
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '_'
            }
        })
        .collect();
    let inner = tx.begin().await?;
    let grow = match inner.get_database_backend() {
        DbBackend::Postgres => format!(
            "CREATE TABLE \"{table}\" AS SELECT repeat('x', 1900) AS filling FROM generate_series(1, 550)"
        ),
        _ => format!("CREATE TABLE \"{table}\" AS SELECT zeroblob(1048576) AS filling"),
    };
    inner.execute_unprepared(&grow).await?;
    inner.rollback().await?;
    Ok(())
}

/// Probes a folder with an unnamed file that is removed after the probe.
#[derive(Debug, Clone)]
pub struct FolderReadiness {
    name: &'static str,
    folder: PathBuf,
    kind: StoredFile,
}

impl FolderReadiness {
    /// Probes `folder`, which answers name `name`.
    pub fn new(name: &'static str, kind: StoredFile, folder: PathBuf) -> Self {
        Self { name, folder, kind }
    }
}

#[async_trait]
impl ReadinessProbe for FolderReadiness {
    fn name(&self) -> &'static str {
        self.name
    }

    async fn probe(&self) -> Result<(), NotReady> {
        let (folder, kind) = (self.folder.clone(), self.kind);
        let written = tokio::task::spawn_blocking(move || {
            write_trial(&folder).map_err(|error| reason(kind, &folder, &error))
        });
        written.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a trial write panicked");
            Err(NotReady::WriteFailed)
        })
    }
}

#[cfg(test)]
#[path = "readiness_tests.rs"]
mod tests;
