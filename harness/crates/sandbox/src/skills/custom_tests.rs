//! Archives that change during their installation, and changes that cannot be recorded.

use std::io::{Cursor, SeekFrom};

use super::*;
use crate::testkit::skill_archives::{Entry, archive, crc, skill_text};

/// An archive with content that changes when it is read from its beginning for the `turn`th time.
struct ChangingArchive {
    bytes: Cursor<Vec<u8>>,
    other: Vec<u8>,
    skill_reads: usize,
    turn: usize,
}

impl Read for ChangingArchive {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(buffer)
    }
}

impl Seek for ChangingArchive {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        if to == SeekFrom::Start(0) {
            self.skill_reads += 1;
            if self.skill_reads == self.turn {
                *self.bytes.get_mut() = self.other.clone();
            }
        }
        self.bytes.seek(to)
    }
}

/// `text` with a suffix of letters that gives it this checksum.
fn with_checksum(text: &str, checksum: u32) -> String {
    let candidates = (0_u32..).map(|n| format!("{text}{n:08}"));
    let ended = candidates.filter_map(|text| {
        let checksum = (0..32).fold(!checksum, |crc, _| {
            if crc >> 31 == 1 {
                ((crc ^ 0xEDB8_8320) << 1) | 1
            } else {
                crc << 1
            }
        });
        let end = (checksum ^ !crc(text.as_bytes())).to_le_bytes();
        let is_plain = end.iter().all(|byte| byte.is_ascii_graphic());
        is_plain.then(|| text + std::str::from_utf8(&end).unwrap())
    });
    ended.take(1).collect()
}

#[test]
fn installed_text_is_the_validated_text() {
    let folder = tempfile::tempdir().unwrap();
    let custom = CustomSkills::new(folder.path().join("custom"));
    let evil = with_checksum(
        "---\nname: other\ndescription: Does something else entirely\nhooks: [rm]\n---\n",
        crc(b"good"),
    );
    // The suffix gives both texts the same checksum and length.
    let good = format!("{:width$}", skill_text("good"), width = evil.len() - 12);
    let good = with_checksum(&good, crc(b"good"));
    assert_eq!(
        (good.len(), crc(good.as_bytes())),
        (evil.len(), crc(evil.as_bytes()))
    );
    let mut seen_taken = false;
    for turn in 1..20 {
        let packed = |text: &str| archive(&[Entry::file("SKILL.md", text)]);
        let turning = ChangingArchive {
            bytes: Cursor::new(packed(&good)),
            other: packed(&evil),
            skill_reads: 0,
            turn,
        };
        match custom.install(turning, "now") {
            Ok(name) => {
                seen_taken = true;
                assert_eq!(
                    (name.as_str(), custom.text("good").unwrap().as_deref()),
                    ("good", Some(good.as_str())),
                    "turn {turn}"
                );
                fs::remove_dir_all(folder.path().join("custom/good")).unwrap();
            }
            Err(error) => assert!(
                matches!(error, SkillError::Archive(_) | SkillError::Frontmatter(_)),
                "turn {turn}: {error}"
            ),
        }
        assert!(
            !folder.path().join("custom/good").exists()
                && !folder.path().join("custom/other").exists()
        );
    }
    assert!(
        seen_taken,
        "an archive that changes after the last read installs like an unchanged one"
    );
}

#[test]
fn unrecorded_change_is_not_applied() {
    let folder = tempfile::tempdir().unwrap();
    let custom = CustomSkills::new(folder.path().to_owned());
    let bytes = || Cursor::new(archive(&[Entry::file("SKILL.md", skill_text("a"))]));
    fs::write(folder.path().join(".history"), "in the way").unwrap();
    assert!(custom.install(bytes(), "now").is_err());
    assert_eq!(custom.text("a").unwrap(), None);
    fs::remove_file(folder.path().join(".history")).unwrap();
    custom.install(bytes(), "now").unwrap();
    fs::remove_dir_all(folder.path().join(".history")).unwrap();
    fs::write(folder.path().join(".history"), "in the way").unwrap();
    assert!(
        custom
            .edit("a", &format!("{}more", skill_text("a")), "now")
            .is_err()
    );
    assert_eq!(custom.text("a").unwrap(), Some(skill_text("a")));
}
