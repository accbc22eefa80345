//! Histories that have become long, or were spoilt.

use super::*;

fn entry(text: &str) -> HistoryEntry {
    HistoryEntry::new(
        Revision::HumanEdit,
        Some(text.to_owned()),
        None,
        "2026-01-01T00:00:00Z".to_owned(),
    )
}

fn said(file: &HistoryFile) -> Vec<String> {
    file.read()
        .unwrap()
        .into_iter()
        .map(|entry| entry.prev_content.unwrap().chars().take(2).collect())
        .collect()
}

#[test]
fn the_oldest_changes_go_until_the_new_one_fits() {
    let folder = tempfile::tempdir().unwrap();
    let file = HistoryFile(folder.path().join("a.jsonl"));
    // One change is as long as all others together may be.
    file.add(&entry("1 short")).unwrap();
    for n in 2..=4 {
        file.add(&entry(&format!("{n} {}", "ü".repeat(3 << 20))))
            .unwrap();
        assert!(fs::metadata(&file.0).unwrap().len() <= MAX_BYTES as u64);
    }
    assert_eq!(said(&file), ["3 ", "4 "]);
    file.add(&entry("5 short")).unwrap();
    assert_eq!(said(&file), ["3 ", "4 ", "5 "]);
}

#[test]
fn a_history_that_is_too_long_or_no_text_is_read_as_far_as_it_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = HistoryFile(folder.path().join("a.jsonl"));
    let line = |text: &str| serde_json::to_string(&entry(text)).unwrap() + "\n";
    let spoilt = [
        line("1").as_bytes(),
        b"\xff\xfe\n",
        line("2").as_bytes(),
        b"{}\n",
    ]
    .concat();
    fs::write(&file.0, spoilt).unwrap();
    assert_eq!(said(&file), ["1", "2"]);
    // It was longer than it may be, and its last bytes begin within a letter.
    let long = ["x", &line(&"ü".repeat(9 << 20)), &line("3")].concat();
    fs::write(&file.0, long).unwrap();
    assert_eq!(said(&file), ["3"]);
    file.add(&entry("4")).unwrap();
    assert_eq!(said(&file), ["3", "4"]);
}

#[test]
fn lines_are_kept_whole() {
    let kept = |most| whole_lines(b"ab\ncd\n", most);
    assert_eq!(kept(6), b"ab\ncd\n");
    assert_eq!((kept(5), kept(3)), (&b"cd\n"[..], &b"cd\n"[..]));
    assert_eq!((kept(2), kept(0)), (&b""[..], &b""[..]));
}
