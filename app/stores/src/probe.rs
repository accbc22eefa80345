//! A look at a database that changes nothing: no directory, no file, no lock, no schema.

use std::io;
use std::path::Path;

use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbBackend, SqlxPostgresConnector, SqlxSqliteConnector,
    Statement,
};
use sqlx::postgres::PgPoolOptions;

use crate::connect::{
    ACQUIRE_LIMIT, CHECK_LIMIT_BYTES, Database, DatabaseConfig, FILE, OpenError, PostgresConfig,
    check, postgres_options, refused, sqlite_options, sqlite_pool, unreachable,
};
use crate::error::Fault;
use crate::lock::DataLock;
use crate::migration::{APPLIED, names};

/// Whether a process of ours holds the session lock on this place.
const POSTGRES_IN_USE: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 \
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
    AND ((classid::bigint << 32) | objid::bigint) = hashtextextended('deerflow:' || current_schema(), 0)";

/// What a database that answers looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// How far its schema is.
    pub schema: Schema,
    /// Whether a running deerflow uses it.
    pub in_use: bool,
}

/// How a database's schema compares to ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schema {
    /// There is none yet; the first start makes it, and the file too.
    Missing,
    /// A start would bring it up to date.
    Older {
        /// The newest migration it has.
        version: String,
    },
    /// It is ours.
    Current,
    /// A newer deerflow wrote it.
    Newer {
        /// A migration that is not known here.
        version: String,
    },
}

impl Database {
    /// Looks at it without opening it for use: an error says why a start could not read it.
    pub async fn probe(config: &DatabaseConfig) -> Result<Probe, OpenError> {
        match config {
            DatabaseConfig::Memory => Ok(Probe {
                schema: Schema::Missing,
                in_use: false,
            }),
            DatabaseConfig::Sqlite(directory) => probe_sqlite(directory).await,
            DatabaseConfig::Postgres(postgres) => probe_postgres(postgres).await,
        }
    }
}

async fn probe_sqlite(directory: &Path) -> Result<Probe, OpenError> {
    let unusable = |error: io::Error| OpenError::Directory {
        directory: directory.to_owned(),
        reason: error.to_string(),
    };
    let file = directory.join(FILE);
    let in_use = DataLock::is_taken(directory).map_err(unusable)?;
    let Some(length) = length_of(&file).map_err(unusable)? else {
        return Ok(Probe {
            schema: Schema::Missing,
            in_use,
        });
    };
    // Without a log nothing can change under a file that nobody uses, and even the shared memory beside it need not be made.
    let still = !in_use
        && length_of(&directory.join(format!("{FILE}-wal")))
            .map_err(unusable)?
            .is_none_or(|length| length == 0);
    let looked = async {
        let options = sqlite_options()
            .filename(&file)
            .create_if_missing(false)
            .read_only(true)
            .immutable(still);
        let pool = sqlite_pool(1)
            .connect_with(options)
            .await
            .map_err(|error| Fault::from(&error))?;
        let db = SqlxSqliteConnector::from_sqlx_sqlite_pool(pool);
        if !in_use && length <= CHECK_LIMIT_BYTES {
            check(&db).await?;
        }
        let schema = schema_of(&db).await?;
        db.close().await?;
        Ok(schema)
    };
    let schema = looked.await.map_err(|fault| match fault {
        Fault::Failed(reason) | Fault::Disk(reason) => OpenError::Damaged {
            file: file.clone(),
            reason,
        },
        other => OpenError::Database(format!(
            "{}: {}",
            file.display(),
            harness::runtime::runs::store::StoreError::from(other)
        )),
    })?;
    Ok(Probe { schema, in_use })
}

async fn probe_postgres(config: &PostgresConfig) -> Result<Probe, OpenError> {
    let options = postgres_options(config)?.options([("default_transaction_read_only", "on")]);
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(ACQUIRE_LIMIT)
        .connect_with(options)
        .await
        .map_err(unreachable)?;
    let db = SqlxPostgresConnector::from_sqlx_postgres_pool(pool);
    let in_use = count(&db, POSTGRES_IN_USE).await.map_err(refused)? > 0;
    let schema = schema_of(&db).await.map_err(refused)?;
    db.close().await.map_err(refused)?;
    Ok(Probe { schema, in_use })
}

pub(crate) async fn schema_of(db: &DatabaseConnection) -> Result<Schema, sea_orm::DbErr> {
    let there = match db.get_database_backend() {
        DbBackend::Postgres => {
            format!("SELECT count(*) FROM pg_class WHERE oid = to_regclass('{APPLIED}')")
        }
        _ => format!("SELECT count(*) FROM sqlite_master WHERE name = '{APPLIED}'"),
    };
    if count(db, &there).await? == 0 {
        return Ok(Schema::Missing);
    }
    let statement = Statement::from_string(
        db.get_database_backend(),
        format!("SELECT version FROM {APPLIED} ORDER BY version"),
    );
    let rows = db.query_all_raw(statement).await?;
    let applied = rows
        .iter()
        .map(|row| row.try_get_by_index::<String>(0))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(compare(&applied, &names()))
}

fn compare(applied: &[String], known: &[String]) -> Schema {
    if let Some(version) = applied.iter().find(|version| !known.contains(version)) {
        return Schema::Newer {
            version: version.clone(),
        };
    }
    match applied.last() {
        None => Schema::Missing,
        Some(version) if applied.len() < known.len() => Schema::Older {
            version: version.clone(),
        },
        Some(_) => Schema::Current,
    }
}

async fn count(db: &DatabaseConnection, query: &str) -> Result<i64, sea_orm::DbErr> {
    let row = db
        .query_one_raw(Statement::from_string(db.get_database_backend(), query))
        .await?;
    row.map_or(Ok(0), |row| row.try_get_by_index(0))
}

/// The length of a file, if there is one.
fn length_of(file: &Path) -> io::Result<Option<u64>> {
    match std::fs::metadata(file) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use harness::runtime::tasks::Tasks;

    use super::*;

    fn entries(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn a_look_tells_what_is_there_and_leaves_no_trace() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("data");
        let config = DatabaseConfig::Sqlite(directory.clone());
        assert_eq!(
            Database::probe(&config).await,
            Ok(Probe {
                schema: Schema::Missing,
                in_use: false
            })
        );
        assert!(!directory.exists());

        let tasks = Tasks::new();
        let db = Database::open(&config, &tasks).await.unwrap();
        assert_eq!(
            Database::probe(&config).await,
            Ok(Probe {
                schema: Schema::Current,
                in_use: true
            })
        );
        db.ping().await.unwrap();
        drop(db);
        tasks.shut_down().await;

        assert_eq!(
            Database::probe(&config).await.map(|probe| probe.schema),
            Ok(Schema::Current)
        );
        drop(Database::open(&config, &Tasks::new()).await.unwrap());
    }

    #[tokio::test]
    async fn a_file_at_rest_is_looked_at_without_a_file_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(FILE);
        let options = sqlite_options()
            .filename(&file)
            .create_if_missing(true)
            .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal);
        let pool = sqlite_pool(1).connect_with(options).await.unwrap();
        let db = SqlxSqliteConnector::from_sqlx_sqlite_pool(pool);
        crate::migration::migrate(&db).await.unwrap();
        db.execute_unprepared(&format!(
            "DELETE FROM {APPLIED} WHERE version NOT LIKE 'm0001%'"
        ))
        .await
        .unwrap();
        db.close().await.unwrap();
        let (before, bytes) = (entries(directory.path()), std::fs::read(&file).unwrap());
        let probe = Database::probe(&DatabaseConfig::Sqlite(directory.path().to_owned()))
            .await
            .unwrap();
        assert!(matches!(probe.schema, Schema::Older { version } if version.starts_with("m0001")));
        assert_eq!(
            (entries(directory.path()), std::fs::read(&file).unwrap()),
            (before, bytes)
        );
    }

    #[tokio::test]
    async fn what_a_start_could_not_read_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(
            directory.path().join(FILE),
            b"no database at all, but long enough to be one".repeat(40),
        )
        .unwrap();
        let damaged = Database::probe(&DatabaseConfig::Sqlite(directory.path().to_owned())).await;
        assert!(
            matches!(damaged, Err(OpenError::Damaged { .. })),
            "{damaged:?}"
        );
        let below_a_file =
            Database::probe(&DatabaseConfig::Sqlite(directory.path().join(FILE))).await;
        assert!(
            matches!(below_a_file, Err(OpenError::Directory { .. })),
            "{below_a_file:?}"
        );
        assert_eq!(
            compare(&["m9".to_owned()], &["m1".to_owned()]),
            Schema::Newer {
                version: "m9".to_owned()
            }
        );
    }
}
