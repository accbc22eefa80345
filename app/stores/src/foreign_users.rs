//! Reader of the users in the database file of a DeerFlow installation.

use std::path::{Path, PathBuf};

use deerflow_domain::accounts::ForeignUser;
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{ConnectOptions, Connection, Row};

/// Reason why the users of a file were not read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the users of {file}: {reason}")]
pub struct ForeignUsersError {
    /// Path of the file.
    pub file: PathBuf,
    /// Description of the failure.
    pub reason: String,
}

const USERS: &str = "\
    SELECT id, email, password_hash, system_role, CAST(created_at AS TEXT), oauth_provider, oauth_id, \
        CAST(COALESCE(needs_setup, 0) AS INTEGER) \
    FROM users ORDER BY created_at, id";

/// Reads the table `users` of a SQLite file. The file is opened for reading only and is not
/// created.
pub async fn read_foreign_users(file: &Path) -> Result<Vec<ForeignUser>, ForeignUsersError> {
    let failed = |error: sqlx::Error| ForeignUsersError {
        file: file.to_owned(),
        reason: error.to_string(),
    };
    let options = SqliteConnectOptions::new()
        .filename(file)
        .read_only(true)
        .disable_statement_logging();
    let mut connection = options.connect().await.map_err(failed)?;
    let rows = sqlx::query(USERS).fetch_all(&mut connection).await;
    let users = rows.and_then(|rows| rows.iter().map(user).collect());
    // A failure to close a connection that only reads has no effect.
    let _ = connection.close().await;
    users.map_err(failed)
}

fn user(row: &SqliteRow) -> Result<ForeignUser, sqlx::Error> {
    Ok(ForeignUser {
        id: row.try_get(0)?,
        email: row.try_get(1)?,
        password_hash: row.try_get(2)?,
        system_role: row.try_get(3)?,
        created_at: row.try_get(4)?,
        oauth_provider: row.try_get(5)?,
        oauth_id: row.try_get(6)?,
        needs_setup: row.try_get::<i64, _>(7)? != 0,
    })
}

#[cfg(test)]
mod tests {
    use sqlx::Executor;

    use super::*;

    /// Table as DeerFlow creates it.
    const TABLE: &str = "\
        CREATE TABLE users (id VARCHAR(36) NOT NULL, email VARCHAR(320) NOT NULL, password_hash VARCHAR(128), \
            system_role VARCHAR(16) NOT NULL, created_at DATETIME NOT NULL, oauth_provider VARCHAR(32), \
            oauth_id VARCHAR(128), needs_setup BOOLEAN NOT NULL, token_version INTEGER NOT NULL, PRIMARY KEY (id))";

    #[tokio::test]
    async fn users_of_deerflow_file_are_read_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("deerflow.db");
        let options = SqliteConnectOptions::new()
            .filename(&file)
            .create_if_missing(true);
        let mut connection = options.connect().await.unwrap();
        connection.execute(TABLE).await.unwrap();
        connection
            .execute(
                "INSERT INTO users VALUES \
                 ('u2', 'Bob@x.org', NULL, 'user', '2026-01-02 00:00:00.000000', 'corp', 's1', 0, 0), \
                 ('u1', 'ann@x.org', '$dfv2$h', 'admin', '2026-01-01 00:00:00.000000', NULL, NULL, 1, 3)",
            )
            .await
            .unwrap();
        connection.close().await.unwrap();
        let users = read_foreign_users(&file).await.unwrap();
        let bob = ForeignUser {
            id: "u2".to_owned(),
            email: "Bob@x.org".to_owned(),
            password_hash: None,
            system_role: "user".to_owned(),
            created_at: "2026-01-02 00:00:00.000000".to_owned(),
            oauth_provider: Some("corp".to_owned()),
            oauth_id: Some("s1".to_owned()),
            needs_setup: false,
        };
        assert_eq!(users.len(), 2);
        assert_eq!(users[1], bob);
        assert_eq!(users[0].password_hash.as_deref(), Some("$dfv2$h"));
        assert!(users[0].needs_setup);
    }

    #[tokio::test]
    async fn missing_file_or_table_is_an_error_with_path() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("absent.db");
        let error = read_foreign_users(&file).await.unwrap_err();
        assert!(error.to_string().contains("absent.db"), "{error}");
        assert!(!file.exists());
        std::fs::write(&file, "").unwrap();
        let error = read_foreign_users(&file).await.unwrap_err();
        assert!(error.to_string().contains("users"), "{error}");
    }
}
