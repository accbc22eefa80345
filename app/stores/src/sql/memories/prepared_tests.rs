//! Usual memories are read by the prepared statement.

use deerflow_core::tasks::Tasks;

use super::*;
use crate::files::database_files::DATABASE_FILE;
use crate::{Database, DatabaseConfig};

async fn database() -> (tempfile::TempDir, Database, Connection) {
    let directory = tempfile::tempdir().unwrap();
    let config = DatabaseConfig::Sqlite(directory.path().to_owned());
    let database = Database::open(&config, &Tasks::new()).await.unwrap();
    let connection = Connection::open(directory.path().join(DATABASE_FILE)).unwrap();
    (directory, database, connection)
}

#[tokio::test]
async fn memory_is_read_unless_it_is_long() {
    let (_directory, _database, connection) = database().await;
    let insert = |agent: &str, length: i64| {
        let sql = "INSERT INTO memories VALUES ('ann', ?1, hex(zeroblob(?2 / 2)), 3, 4, 5)";
        connection.execute(sql, params![agent, length]).unwrap();
    };
    insert("usual", MAX_DOCUMENT);
    insert("long", MAX_DOCUMENT + 2);
    let read =
        |user: &str, agent: &str| row(&connection, &(user.to_owned(), agent.to_owned())).unwrap();
    let Prepared::Done(Ok(Some(usual))) = read("ann", "usual") else {
        panic!("the memory is not read");
    };
    assert_eq!(
        (
            usual.user_id,
            usual.agent,
            usual.revision,
            usual.edits,
            usual.updated_at
        ),
        ("ann".to_owned(), "usual".to_owned(), 3, 4, 5)
    );
    assert_eq!(usual.document_json.len() as i64, MAX_DOCUMENT);
    assert!(matches!(read("ann", "long"), Prepared::Unsuited));
    for (user, agent) in [("bob", "usual"), ("ann", "")] {
        assert!(matches!(read(user, agent), Prepared::Done(Ok(None))));
    }
}
