//! Usual threads need prepared statements only; other cases change nothing.

use deerflow_core::ids::ThreadId;
use deerflow_core::tasks::Tasks;
use deerflow_runtime::runs::store::RequestKey;
use serde_json::{Value, json};

use super::*;
use crate::db::entity::moment;
use crate::files::database_files::DATABASE_FILE;
use crate::{Database, DatabaseConfig};

fn new_thread(id: &str, metadata: Value) -> NewThread {
    NewThread {
        thread_id: ThreadId::parse(id).unwrap(),
        user_id: Some("ann".to_owned()),
        assistant: None,
        assistant_id: None,
        metadata: metadata.as_object().cloned().unwrap_or_default(),
        ttl: None,
        request: None,
        at: moment(1_700_000_000_000_000),
    }
}

#[tokio::test]
async fn usual_thread_is_created_with_its_facts() {
    let (directory, tasks) = (tempfile::tempdir().unwrap(), Tasks::new());
    let config = DatabaseConfig::Sqlite(directory.path().to_owned());
    let _database = Database::open(&config, &tasks).await.unwrap();
    let connection = Connection::open(directory.path().join(DATABASE_FILE)).unwrap();
    let count = |sql: &str| -> i64 { connection.query_row(sql, [], |row| row.get(0)).unwrap() };
    let is_created = |new: &NewThread| {
        let created = create(&connection, &(new.clone(), QuotaCheck::unlimited())).unwrap();
        matches!(created, Prepared::Done(Ok(Created::New(record))) if record.thread_id == new.thread_id)
    };

    assert!(is_created(&new_thread("t1", json!({}))));
    assert!(is_created(&new_thread(
        "t2",
        json!({"team": "red", "level": 3})
    )));
    assert_eq!(
        count("SELECT COUNT(*) FROM threads_meta WHERE status = 'idle'"),
        2
    );
    assert_eq!(
        count("SELECT COUNT(*) FROM thread_facts WHERE thread_id = 't2'"),
        2
    );

    let key = RequestKey {
        user_id: "ann".to_owned(),
        route: "/threads".to_owned(),
        name: "k".to_owned(),
        part: 0,
        digest: String::new(),
        expires_at: moment(1_800_000_000_000_000),
    };
    let with_key = NewThread {
        request: Some(key),
        ..new_thread("t3", json!({}))
    };
    for unsuited in [with_key, new_thread("t1", json!({"team": "blue"}))] {
        assert!(!is_created(&unsuited));
    }
    assert_eq!(count("SELECT COUNT(*) FROM threads_meta"), 2);
    assert_eq!(count("SELECT COUNT(*) FROM thread_facts"), 2);
}
