//! History of a custom skill, one line per change, for rollbacks.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::skill::SKILL_FILE;

/// Maximum size of a history, in bytes. The oldest changes are dropped beyond it.
const MAX_BYTES: usize = 16 << 20;

/// Kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Revision {
    /// Installed from an archive.
    Install,
    /// Edited by a user.
    HumanEdit,
    /// Deleted by a user.
    HumanDelete,
    /// Restored to the text before a change.
    Rollback,
}

/// A change of a skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// Kind of the change.
    pub action: Revision,
    /// Author of the change.
    pub author: String,
    /// Changed file of the skill.
    pub file_path: String,
    /// Content before the change; null if the file did not exist.
    pub prev_content: Option<String>,
    /// Content after the change; null if the file was deleted.
    pub new_content: Option<String>,
    /// Time of the change, in RFC 3339.
    pub ts: String,
}

impl HistoryEntry {
    /// Creates an entry for the skill's `SKILL.md`.
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

/// History file of one skill.
#[derive(Debug)]
pub(super) struct HistoryFile(pub(super) PathBuf);

impl HistoryFile {
    /// Returns all changes, oldest first. Invalid lines are skipped.
    pub(super) fn read(&self) -> io::Result<Vec<HistoryEntry>> {
        Ok(self
            .newest()?
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect())
    }

    /// Appends a change.
    pub(super) fn add(&self, entry: &HistoryEntry) -> io::Result<()> {
        let line = serde_json::to_string(entry)? + "\n";
        self.trim(line.len())?;
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.0)?;
        file.write_all(line.as_bytes())
    }

    /// Reads the end of the file, up to the maximum size; its first line may be incomplete.
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

    fn trim(&self, needed: usize) -> io::Result<()> {
        let folder = self.0.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let length = fs::metadata(&self.0).map_or(0, |facts| facts.len());
        if length + needed as u64 <= MAX_BYTES as u64 {
            return Ok(());
        }
        let newest = self.newest()?;
        let mut pending = tempfile::NamedTempFile::new_in(folder)?;
        pending.write_all(whole_lines(&newest, MAX_BYTES.saturating_sub(needed)))?;
        pending.persist(&self.0)?;
        Ok(())
    }
}

/// Returns the last complete lines within a number of bytes.
fn whole_lines(bytes: &[u8], max_bytes: usize) -> &[u8] {
    let surplus = bytes.len().saturating_sub(max_bytes);
    let is_behind_a_line = |at: &usize| *at == 0 || bytes[at - 1] == b'\n';
    &bytes[(surplus..=bytes.len())
        .find(is_behind_a_line)
        .unwrap_or(bytes.len())..]
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
