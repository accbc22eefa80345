//! What was done to a user's own skill, one line for each change, so that it can be taken back.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::skill::SKILL_FILE;

/// The longest history that is read or kept, in bytes. Of a longer one the oldest changes are forgotten.
const MAX_BYTES: usize = 16 << 20;

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Revision {
    /// Unpacked from an archive.
    Install,
    /// Written by a person.
    HumanEdit,
    /// Taken away by a person.
    HumanDelete,
    /// Set back to what it was before a change.
    Rollback,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// What was done.
    pub action: Revision,
    /// Who did it.
    pub author: String,
    /// To which file of the skill.
    pub file_path: String,
    /// What it said before; null when it was not there.
    pub prev_content: Option<String>,
    /// What it says since; null when it is gone.
    pub new_content: Option<String>,
    /// When, in RFC 3339.
    pub ts: String,
}

impl HistoryEntry {
    /// A change of a skill's own file.
    pub(super) fn new(
        action: Revision,
        prev_content: Option<String>,
        new_content: Option<String>,
        ts: String,
    ) -> Self {
        Self {
            action,
            author: "human".to_owned(),
            file_path: SKILL_FILE.to_owned(),
            prev_content,
            new_content,
            ts,
        }
    }
}

/// The file with the changes of one skill.
#[derive(Debug)]
pub(super) struct HistoryFile(pub(super) PathBuf);

impl HistoryFile {
    /// All changes, the oldest first. Lines that are none are left out.
    pub(super) fn read(&self) -> io::Result<Vec<HistoryEntry>> {
        Ok(self
            .newest()?
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect())
    }

    /// Adds a change.
    pub(super) fn add(&self, entry: &HistoryEntry) -> io::Result<()> {
        let line = serde_json::to_string(entry)? + "\n";
        self.make_room(line.len())?;
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.0)?;
        file.write_all(line.as_bytes())
    }

    /// The end of the file, as much as is read: its first line may have lost its beginning.
    fn newest(&self) -> io::Result<Vec<u8>> {
        let mut file = match File::open(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened?,
        };
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(MAX_BYTES as u64)))?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn make_room(&self, wanted: usize) -> io::Result<()> {
        let folder = self.0.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let length = fs::metadata(&self.0).map_or(0, |facts| facts.len());
        if length + wanted as u64 <= MAX_BYTES as u64 {
            return Ok(());
        }
        let newest = self.newest()?;
        let mut pending = tempfile::NamedTempFile::new_in(folder)?;
        pending.write_all(whole_lines(&newest, MAX_BYTES.saturating_sub(wanted)))?;
        pending.persist(&self.0)?;
        Ok(())
    }
}

/// The last lines that have so many bytes at most.
fn whole_lines(bytes: &[u8], most: usize) -> &[u8] {
    let surplus = bytes.len().saturating_sub(most);
    let is_behind_a_line = |at: &usize| *at == 0 || bytes[at - 1] == b'\n';
    &bytes[(surplus..=bytes.len())
        .find(is_behind_a_line)
        .unwrap_or(bytes.len())..]
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
