//! Jobs with prepared statements, over a database file.

use deerflow_runtime::runs::store::StoreError;
use tokio::sync::oneshot;

use super::*;
use crate::db::space::WriteClass;
use crate::db::tx::{Prepared, PreparedWork, Work};
use crate::db::write_job::QueuedWrite;

type Text = &'static str;

/// Statement that a job runs, or the instruction to refuse, to fail or to panic.
fn job(text: Text) -> Box<dyn Job> {
    let work: Work<Text, (), StoreError> = |_, _| Box::pin(async { Ok(()) });
    let prepared: PreparedWork<Text, (), StoreError> = |connection, text| {
        Ok(match *text {
            "unsuited" => Prepared::Unsuited,
            "refuses" => Prepared::Done(Err(StoreError::Failed("refused".to_owned()))),
            "panics" => panic!("boom"),
            sql => Prepared::Done(Ok(connection.execute_batch(sql)?)),
        })
    };
    let (caller, _) = oneshot::channel();
    Box::new(QueuedWrite {
        class: WriteClass::Progress,
        args: text,
        work,
        prepared: Some(prepared),
        result: None,
        caller,
    })
}

/// A writer over a file with an empty table.
struct Rig {
    writer: PreparedWriter,
    file: PathBuf,
    _directory: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("test.db");
        let connection = Connection::open(&file).unwrap();
        connection
            .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (n BIGINT PRIMARY KEY)")
            .unwrap();
        Self {
            writer: PreparedWriter::new(&file),
            file,
            _directory: directory,
        }
    }

    /// Writes jobs, and returns the numbers of committed and of other jobs, and of stored rows.
    fn write(&mut self, texts: &[Text]) -> (usize, usize, i64) {
        let batch = texts.iter().copied().map(job).collect();
        let (committed, others) = self.writer.write(batch);
        let connection = Connection::open(&self.file).unwrap();
        let rows = connection.query_row("SELECT COUNT(*) FROM t", [], |row| row.get(0));
        (committed.len(), others.len(), rows.unwrap())
    }
}

const ONE: Text = "INSERT INTO t VALUES (1)";
const TWO: Text = "INSERT INTO t VALUES (2)";

#[test]
fn refusals_and_unsuited_jobs_do_not_affect_the_others() {
    let mut rig = Rig::new();
    assert_eq!(rig.write(&[ONE, "refuses", "unsuited", TWO]), (3, 1, 2));
}

#[test]
fn failed_statement_returns_all_jobs_and_stores_none() {
    let mut rig = Rig::new();
    assert_eq!(rig.write(&[ONE, TWO, ONE]), (0, 3, 0));
    assert_eq!(rig.write(&[ONE, TWO]), (2, 0, 2));
}

#[test]
fn panic_returns_all_jobs_and_stores_none() {
    let mut rig = Rig::new();
    assert_eq!(rig.write(&[ONE, "panics"]), (0, 2, 0));
    assert_eq!(rig.write(&[ONE]), (1, 0, 1));
}

#[test]
fn lock_of_another_program_returns_all_jobs() {
    let mut rig = Rig::new();
    let other = Connection::open(&rig.file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(rig.write(&[ONE, TWO]), (0, 2, 0));
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(rig.write(&[ONE, TWO]), (2, 0, 2));
}
