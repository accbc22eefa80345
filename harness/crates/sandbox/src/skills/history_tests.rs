//! Long and corrupt histories.

use super::*;

fn entry(text: &str) -> HistoryEntry {
    HistoryEntry::new(
        Revision::HumanEdit,
        Some(text.to_owned()),
        None,
        "2026-01-01T00:00:00Z".to_owned(),
    )
}

fn texts(file: &HistoryFile) -> Vec<String> {
    file.read()
        .unwrap()
        .into_iter()
        .map(|entry| entry.prev_content.unwrap().chars().take(2).collect())
        .collect()
}

#[test]
fn oldest_changes_are_dropped_until_new_one_fits() {
    let folder = tempfile::tempdir().unwrap();
    let file = HistoryFile(folder.path().join("a.jsonl"));
    // One change is as large as the maximum for all others together.
    file.add(&entry("1 short")).unwrap();
    for n in 2..=4 {
        file.add(&entry(&format!("{n} {}", "ü".repeat(3 << 20))))
            .unwrap();
        assert!(fs::metadata(&file.0).unwrap().len() <= MAX_BYTES as u64);
    }
    assert_eq!(texts(&file), ["3 ", "4 "]);
    file.add(&entry("5 short")).unwrap();
    assert_eq!(texts(&file), ["3 ", "4 ", "5 "]);
}

#[test]
fn corrupt_or_long_history_is_read_partially() {
    let folder = tempfile::tempdir().unwrap();
    let file = HistoryFile(folder.path().join("a.jsonl"));
    let line = |text: &str| serde_json::to_string(&entry(text)).unwrap() + "\n";
    let corrupt = [
        line("1").as_bytes(),
        b"\xff\xfe\n",
        line("2").as_bytes(),
        b"{}\n",
    ]
    .concat();
    fs::write(&file.0, corrupt).unwrap();
    assert_eq!(texts(&file), ["1", "2"]);
    // The file is longer than the maximum, and the cut is inside of a character.
    let long = ["x", &line(&"ü".repeat(9 << 20)), &line("3")].concat();
    fs::write(&file.0, long).unwrap();
    assert_eq!(texts(&file), ["3"]);
    file.add(&entry("4")).unwrap();
    assert_eq!(texts(&file), ["3", "4"]);
}

#[test]
fn whole_lines_returns_complete_lines() {
    let kept = |most| whole_lines(b"ab\ncd\n", most);
    assert_eq!(kept(6), b"ab\ncd\n");
    assert_eq!((kept(5), kept(3)), (&b"cd\n"[..], &b"cd\n"[..]));
    assert_eq!((kept(2), kept(0)), (&b""[..], &b""[..]));
}
