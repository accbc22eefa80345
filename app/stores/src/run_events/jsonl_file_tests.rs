//! What a journal file survives.

use harness::testkit::{event, run, thread};

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
fn a_torn_last_line_is_cut_off_and_its_seq_given_again() {
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
fn a_damaged_line_hides_no_other() {
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
fn the_greatest_seq_is_remembered_over_a_deletion_and_a_restart() {
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
