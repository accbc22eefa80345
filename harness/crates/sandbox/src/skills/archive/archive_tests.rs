//! Real archives, valid and hostile.

use std::io::Cursor;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::*;
use crate::testkit::skill_archives::{Entry, archive, compressed, hostile, skill_text};

fn install(bytes: Vec<u8>, folder: &std::path::Path) -> Result<String, ArchiveError> {
    let archive = SkillArchive::open(Cursor::new(bytes))?;
    let name = archive.head().name.clone();
    archive.unpack(folder)?;
    Ok(name)
}

/// Processor time used by this thread, independent of the machine's load.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

#[test]
fn valid_archive_is_unpacked_unchanged() {
    let text = skill_text("web-reader");
    let large = "some text\n".repeat(10_000);
    for bytes in [
        archive(&[
            Entry::file("web-reader/SKILL.md", text.clone()),
            Entry::file("web-reader/scripts/a.py", large.clone()).mode(0o100_755),
        ]),
        compressed(&[
            ("SKILL.md", text.as_bytes()),
            ("scripts/a.py", large.as_bytes()),
        ]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(install(bytes, folder.path()).unwrap(), "web-reader");
        assert_eq!(
            std::fs::read_to_string(folder.path().join("SKILL.md")).unwrap(),
            text
        );
        assert_eq!(
            std::fs::read_to_string(folder.path().join("scripts/a.py")).unwrap(),
            large
        );
    }
}

#[test]
fn links_are_skipped() {
    let link = Entry::file("etc", "/etc").mode(0o120_777);
    let folder = tempfile::tempdir().unwrap();
    install(
        archive(&[Entry::file("SKILL.md", skill_text("a")), link]),
        folder.path(),
    )
    .unwrap();
    assert!(!folder.path().join("etc").exists());
}

#[test]
fn hostile_archives_are_rejected_quickly() {
    let base = tempfile::tempdir().unwrap();
    for (what, bytes) in hostile() {
        let folder = base.path().join("inside");
        std::fs::create_dir(&folder).unwrap();
        let started = cpu_time();
        let refused = install(bytes, &folder);
        let took = cpu_time() - started;
        assert!(refused.is_err(), "{what} was accepted");
        assert!(took < Duration::from_secs(2), "{what} took {took:?}");
        let text = refused.unwrap_err().to_string();
        assert!(
            text.len() < 1_000 && !text.contains('\u{1b}') && !text.contains('\n'),
            "{what}: {text:?}"
        );
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(
            std::fs::read_dir(base.path()).unwrap().count(),
            0,
            "{what} wrote outside of its folder"
        );
    }
}

#[test]
fn corrupt_archives_never_panic() {
    let good = compressed(&[
        ("a/SKILL.md", skill_text("a").as_bytes()),
        ("a/b.txt", b"hello hello hello"),
    ]);
    let mut state: u64 = 7;
    let mut next = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for round in 0..3_000 {
        let mut bytes = good.clone();
        for _ in 0..=next(3) {
            let at = next(bytes.len());
            bytes[at] = next(256) as u8;
        }
        if round % 4 == 0 {
            bytes.truncate(next(bytes.len()));
        }
        let folder = tempfile::tempdir().unwrap();
        let _either = install(bytes, folder.path());
    }
}

#[test]
fn member_matches_full_name_or_suffix() {
    let bytes = archive(&[
        Entry::file("web/docs/SKILL.txt", "docs"),
        Entry::file("web/SKILL.md", skill_text("web")),
        Entry::file("web/a/note.md", "a"),
        Entry::file("web/note.md", "top"),
        Entry::file("web/.hidden", "x"),
        Entry::file("web/run", &b"\x7fELF"[..]),
        Entry::file(
            "web/large",
            vec![b'x'; usize::try_from(MAX_MEMBER_BYTES).unwrap() + 1],
        ),
    ]);
    let read = |name: &str| unpack::member(Cursor::new(&bytes), name);
    let text = |name: &str| {
        read(name)
            .unwrap()
            .map(|bytes| String::from_utf8(bytes).unwrap())
    };
    assert_eq!(text("SKILL.md"), Some(skill_text("web")));
    assert_eq!(
        text("web/note.md").as_deref(),
        Some("top"),
        "the full name is preferred"
    );
    assert_eq!(
        text("note.md").as_deref(),
        Some("a"),
        "otherwise the first match"
    );
    for none in ["", "ILL.md", ".hidden", "../SKILL.md", "web", "web/"] {
        assert_eq!(text(none), None, "{none:?}");
    }
    assert!(matches!(
        read("large"),
        Err(ArchiveError::Entry {
            problem: EntryProblem::Large,
            ..
        })
    ));
    assert!(matches!(
        read("run"),
        Err(ArchiveError::Entry {
            problem: EntryProblem::Program,
            ..
        })
    ));
    for (what, bytes) in hostile() {
        // Corrupt bytes of an entry are detected when that entry is read.
        let shown = unpack::member(Cursor::new(bytes), "etc/passwd");
        assert!(!matches!(shown, Ok(Some(_))), "{what}");
    }
}

fn markdown_files(bytes: Vec<u8>, max_bytes: u64) -> Result<Vec<TextFile>, ArchiveError> {
    text_files(Cursor::new(bytes), max_bytes, |path| path.ends_with(".md"))
}

#[test]
fn text_files_are_returned_by_path_with_hidden_folders() {
    let bytes = archive(&[
        Entry::file("p/z.md", "z"),
        Entry::file("p/.hidden/a.md", "a"),
        Entry::file("p/tool", "\u{7f}ELF"),
        Entry::file("p/link.md", "z.md").mode(0o120_777),
    ]);
    let files: Vec<(String, String)> = markdown_files(bytes, 2)
        .unwrap()
        .into_iter()
        .map(|file| (file.path, file.text))
        .collect();
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    assert_eq!(files, [file("p/.hidden/a.md", "a"), file("p/z.md", "z")]);
}

#[test]
fn text_files_beyond_their_limit_are_rejected() {
    let bytes = archive(&[Entry::file("a.md", "12"), Entry::file("b.md", "34")]);
    assert!(markdown_files(bytes.clone(), 4).is_ok());
    assert!(matches!(
        markdown_files(bytes, 3),
        Err(ArchiveError::LargeFiles { max_bytes: 3 })
    ));
}

#[test]
fn text_file_that_is_not_utf_8_is_rejected() {
    let bytes = archive(&[Entry::file("a.md", vec![0xff, 0xfe])]);
    let error = markdown_files(bytes, 9).unwrap_err();
    assert_eq!(error.to_string(), "the entry \"a.md\" is not UTF-8 text");
}

#[test]
fn packed_files_are_read_back_unchanged() {
    let file = |path: &str, text: &str| TextFile {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let files = [file(".a/b.md", "\u{feff}x\r\n"), file("ü.md", "")];
    let bytes = pack(&files).unwrap();
    assert_eq!(bytes, pack(&files).unwrap());
    assert_eq!(markdown_files(bytes, 99).unwrap(), files);
}
