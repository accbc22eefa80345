//! Custom skills of one user: their folders and their history.
//!
//! ```text
//! {home}/users/{user}/skills/custom/{name}/SKILL.md
//! {home}/users/{user}/skills/custom/.history/{name}.jsonl
//! ```
//!
//! A change is recorded before it is applied, so that none is missing from the history; a change
//! that cannot be recorded is not applied. All functions here may block on the disk.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use super::archive::{MAX_SKILL_FILE_BYTES, SkillArchive};
use super::error::SkillError;
use super::frontmatter;
use super::history::{HistoryEntry, HistoryFile, Revision};
use super::skill::SKILL_FILE;
use super::skill_name::is_skill_name;
use deerflow_core::config::lock_folder;

/// Maximum number of custom skills per user.
const MAX_SKILLS: usize = 500;
/// Prefix of staging folders, which are being filled or deleted and are not scanned.
const STAGING_PREFIX: &str = ".passing-";

/// Custom skills of one user.
#[derive(Debug)]
pub(super) struct CustomSkills {
    folder: PathBuf,
}

impl CustomSkills {
    /// Creates access to the skills in a folder, which may not exist yet.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Folder of the skills.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the text of a skill; `None` if it does not exist.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, SkillError> {
        let Some(folder) = self.folder_of(name) else {
            return Ok(None);
        };
        match fs::read_to_string(folder.join(SKILL_FILE)) {
            Ok(text) => Ok(Some(text)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Installs an archive and returns the name of its skill.
    pub(super) fn install(
        &self,
        archive: impl Read + Seek,
        now: &str,
    ) -> Result<String, SkillError> {
        let _lock = self.lock_folder()?;
        let archive = SkillArchive::open(archive)?;
        let name = archive.head().name.clone();
        let target = self.folder.join(&name);
        if target.exists() {
            return Err(SkillError::Exists(name));
        }
        self.check_room()?;
        let staging_dir = self.staging_dir()?;
        let staged = staging_dir.path().join(&name);
        fs::create_dir(&staged)?;
        archive.unpack(&staged)?;
        let text = fs::read_to_string(staged.join(SKILL_FILE))?;
        // The archive may have changed since it was validated.
        check_text(&name, &text)?;
        self.record(
            &name,
            &HistoryEntry::new(Revision::Install, None, Some(text), now.to_owned()),
        )?;
        self.publish(&staged, &target, &name)?;
        Ok(name)
    }

    /// Replaces the text of an existing skill.
    pub(super) fn edit(&self, name: &str, text: &str, now: &str) -> Result<(), SkillError> {
        let _lock = self.lock_folder()?;
        let before = self
            .text(name)?
            .ok_or_else(|| SkillError::NotFound(name.to_owned()))?;
        check_text(name, text)?;
        self.record(
            name,
            &HistoryEntry::new(
                Revision::HumanEdit,
                Some(before),
                Some(text.to_owned()),
                now.to_owned(),
            ),
        )?;
        self.write(name, text)
    }

    /// Deletes a skill. Its last text stays in its history.
    pub(super) fn remove(&self, name: &str, now: &str) -> Result<(), SkillError> {
        let _lock = self.lock_folder()?;
        let before = self
            .text(name)?
            .ok_or_else(|| SkillError::NotFound(name.to_owned()))?;
        self.record(
            name,
            &HistoryEntry::new(Revision::HumanDelete, Some(before), None, now.to_owned()),
        )?;
        let staging_dir = self.staging_dir()?;
        fs::rename(self.folder.join(name), staging_dir.path().join(name))?;
        Ok(staging_dir.close()?)
    }

    /// Returns the changes of a skill, oldest first; `None` if it never existed.
    pub(super) fn history(&self, name: &str) -> Result<Option<Vec<HistoryEntry>>, SkillError> {
        let Some(folder) = self.folder_of(name) else {
            return Ok(None);
        };
        let entries = self.history_of(name).read()?;
        Ok((!entries.is_empty() || folder.is_dir()).then_some(entries))
    }

    /// Restores the text of a skill before a change; a negative `index` counts from the end.
    pub(super) fn roll_back(&self, name: &str, index: i64, now: &str) -> Result<(), SkillError> {
        let _lock = self.lock_folder()?;
        let mut entries = self
            .history(name)?
            .ok_or_else(|| SkillError::NotFound(name.to_owned()))?;
        let length = i64::try_from(entries.len()).unwrap_or(i64::MAX);
        let position = if index < 0 {
            length.saturating_add(index)
        } else {
            index
        };
        let position = usize::try_from(position)
            .ok()
            .filter(|position| *position < entries.len());
        let position = position
            .ok_or_else(|| SkillError::Refused(format!("history_index {index} is out of range")))?;
        let Some(text) = entries.swap_remove(position).prev_content else {
            return Err(SkillError::Refused(
                "there is no text before this change".to_owned(),
            ));
        };
        let before = self.text(name)?;
        if before.is_none() {
            self.check_room()?;
        }
        check_text(name, &text)?;
        self.record(
            name,
            &HistoryEntry::new(
                Revision::Rollback,
                before,
                Some(text.clone()),
                now.to_owned(),
            ),
        )?;
        self.write(name, &text)
    }

    /// Folder of a skill, if the name is valid.
    fn folder_of(&self, name: &str) -> Option<PathBuf> {
        is_skill_name(name).then(|| self.folder.join(name))
    }

    /// Acquires the exclusive lock on this user's skills, and removes the staging folders of
    /// processes that died.
    fn lock_folder(&self) -> Result<File, SkillError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        let lock = lock_folder(&self.folder)?;
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry
                .file_name()
                .to_string_lossy()
                .starts_with(STAGING_PREFIX)
            {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(lock)
    }

    fn staging_dir(&self) -> io::Result<tempfile::TempDir> {
        tempfile::Builder::new()
            .prefix(STAGING_PREFIX)
            .tempdir_in(&self.folder)
    }

    fn check_room(&self) -> Result<(), SkillError> {
        match fs::read_dir(&self.folder)?.count() {
            count if count < MAX_SKILLS => Ok(()),
            _ => Err(SkillError::Refused(format!(
                "there are {MAX_SKILLS} skills already; remove some first"
            ))),
        }
    }

    /// Atomically writes the validated text of a skill; creates its folder if missing.
    fn write(&self, name: &str, text: &str) -> Result<(), SkillError> {
        let Some(target) = self.folder_of(name) else {
            return Err(SkillError::NotFound(name.to_owned()));
        };
        if target.is_dir() {
            let mut pending = tempfile::Builder::new()
                .prefix(STAGING_PREFIX)
                .tempfile_in(&target)?;
            pending.write_all(text.as_bytes())?;
            pending.as_file().sync_all()?;
            pending
                .persist(target.join(SKILL_FILE))
                .map_err(|error| error.error)?;
            return Ok(());
        }
        let staging_dir = self.staging_dir()?;
        let staged = staging_dir.path().join(name);
        fs::create_dir(&staged)?;
        fs::write(staged.join(SKILL_FILE), text)?;
        self.publish(&staged, &target, name)
    }

    /// Moves a finished folder to its final name, unless the name is in use.
    fn publish(&self, staged: &Path, target: &Path, name: &str) -> Result<(), SkillError> {
        match rustix::fs::renameat_with(CWD, staged, CWD, target, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(SkillError::Exists(name.to_owned())),
            // Some file systems do not support it. The lock on the folder prevents a race.
            Err(Errno::INVAL | Errno::NOSYS) if !target.exists() => Ok(fs::rename(staged, target)?),
            Err(errno) => Err(io::Error::from(errno).into()),
        }
    }

    fn history_of(&self, name: &str) -> HistoryFile {
        HistoryFile(self.folder.join(".history").join(format!("{name}.jsonl")))
    }

    fn record(&self, name: &str, entry: &HistoryEntry) -> Result<(), SkillError> {
        Ok(self.history_of(name).add(entry)?)
    }
}

/// Rejects a text that is not a valid skill of this name.
fn check_text(name: &str, text: &str) -> Result<(), SkillError> {
    if text.len() as u64 > MAX_SKILL_FILE_BYTES {
        return Err(SkillError::Refused(format!(
            "SKILL.md is longer than {MAX_SKILL_FILE_BYTES} bytes"
        )));
    }
    let head = frontmatter::check(text)?;
    if head.name != name {
        return Err(SkillError::Refused(format!(
            "the name in SKILL.md is '{}' and must stay '{name}'",
            head.name
        )));
    }
    Ok(())
}

#[cfg(test)]
#[path = "custom_tests.rs"]
mod tests;
