//! Damage that a journal file survives.

use deerflow_runtime::testkit::{event, run, thread};

use super::*;

fn journal(directory: &Path) -> Journal {
    Journal::new(directory, &thread("t1"))
}

fn seqs(journal: &mut Journal) -> Vec<u64> {
    journal
        .read()
        .unwrap()
        .into_iter()
        .map(|row| row.seq)
        .collect()
}

#[test]
fn incomplete_last_line_is_cut_and_seq_reassigned() {
    let directory = tempfile::tempdir().unwrap();
    journal(directory.path())
        .append(vec![event("t1", "r1", "a"), event("t1", "r1", "b")])
        .unwrap();
    let file = directory.path().join("t1.jsonl");
    let whole = fs::read(&file).unwrap();
    let first_line = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for cut in first_line..whole.len() {
        fs::write(&file, &whole[..cut]).unwrap();
        let mut reopened = journal(directory.path());
        assert_eq!(seqs(&mut reopened), [1], "cut at {cut}");
        assert_eq!(
            reopened.append(vec![event("t1", "r1", "c")]),
            Ok(2),
            "cut at {cut}"
        );
        assert_eq!(seqs(&mut journal(directory.path())), [1, 2], "cut at {cut}");
    }
}

#[test]
fn damaged_line_does_not_hide_others() {
    let directory = tempfile::tempdir().unwrap();
    journal(directory.path())
        .append(vec![
            event("t1", "r1", "a"),
            event("t1", "r1", "b"),
            event("t1", "r1", "c"),
        ])
        .unwrap();
    let file = directory.path().join("t1.jsonl");
    let text = fs::read_to_string(&file)
        .unwrap()
        .replace("{\"seq\":2", "{\"s#q\":2");
    fs::write(&file, text).unwrap();
    assert_eq!(seqs(&mut journal(directory.path())), [1, 3]);
}

#[test]
fn greatest_seq_survives_deletion_and_restart() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = journal(directory.path());
    first
        .append(vec![event("t1", "r1", "a"), event("t1", "r2", "b")])
        .unwrap();
    first.delete_run(&run("r2")).unwrap();
    let mut reopened = journal(directory.path());
    assert_eq!(reopened.append(vec![event("t1", "r3", "c")]), Ok(3));
    assert_eq!(seqs(&mut reopened), [1, 3]);
}
