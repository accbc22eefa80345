//! The skills that one user brought along: their folders, and what was done to them.
//!
//! ```text
//! {home}/users/{user}/skills/custom/{name}/SKILL.md
//! {home}/users/{user}/skills/custom/.history/{name}.jsonl
//! ```
//!
//! A change is written down before it is done, so that none is missing: what could not be written down was not done. Everything here
//! may block on the disk.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use super::archive::{LONGEST_SKILL_FILE, SkillArchive};
use super::error::SkillError;
use super::frontmatter;
use super::history::{HistoryEntry, HistoryFile, Revision};
use super::skill::{SKILL_FILE, is_skill_name};
use crate::config::hold_folder;

/// The most skills that a user brings along.
const MOST_SKILLS: usize = 500;
/// How folders begin that are being filled or emptied: nobody looks into them.
const PASSING: &str = ".passing-";

/// One user's own skills.
#[derive(Debug)]
pub(super) struct CustomSkills {
    folder: PathBuf,
}

impl CustomSkills {
    /// Those in this folder, which need not be there yet.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Where they lie.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The whole text of a skill; nothing when there is none of this name.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, SkillError> {
        let Some(folder) = self.of(name) else {
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

    /// Unpacks an archive and says what its skill is called.
    pub(super) fn install(
        &self,
        archive: impl Read + Seek,
        now: &str,
    ) -> Result<String, SkillError> {
        let _turn = self.turn()?;
        let archive = SkillArchive::open(archive)?;
        let name = archive.head().name.clone();
        let target = self.folder.join(&name);
        if target.exists() {
            return Err(SkillError::Exists(name));
        }
        self.check_room()?;
        let passing = self.passing()?;
        let staged = passing.path().join(&name);
        fs::create_dir(&staged)?;
        archive.unpack(&staged)?;
        let text = fs::read_to_string(staged.join(SKILL_FILE))?;
        // The archive may have changed since it was judged.
        check_text(&name, &text)?;
        self.note(
            &name,
            &HistoryEntry::new(Revision::Install, None, Some(text), now.to_owned()),
        )?;
        self.put(&staged, &target, &name)?;
        Ok(name)
    }

    /// Writes the file of a skill that is there.
    pub(super) fn edit(&self, name: &str, text: &str, now: &str) -> Result<(), SkillError> {
        let _turn = self.turn()?;
        let before = self
            .text(name)?
            .ok_or_else(|| SkillError::NotFound(name.to_owned()))?;
        check_text(name, text)?;
        self.note(
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

    /// Takes a skill away. What it said stays in its history.
    pub(super) fn remove(&self, name: &str, now: &str) -> Result<(), SkillError> {
        let _turn = self.turn()?;
        let before = self
            .text(name)?
            .ok_or_else(|| SkillError::NotFound(name.to_owned()))?;
        self.note(
            name,
            &HistoryEntry::new(Revision::HumanDelete, Some(before), None, now.to_owned()),
        )?;
        let passing = self.passing()?;
        fs::rename(self.folder.join(name), passing.path().join(name))?;
        Ok(passing.close()?)
    }

    /// What was done to a skill, the oldest first; nothing when there never was one of this name.
    pub(super) fn history(&self, name: &str) -> Result<Option<Vec<HistoryEntry>>, SkillError> {
        let Some(folder) = self.of(name) else {
            return Ok(None);
        };
        let entries = self.history_of(name).read()?;
        Ok((!entries.is_empty() || folder.is_dir()).then_some(entries))
    }

    /// Sets a skill's file back to what it was before a change; `index` counts from the end when it is negative.
    pub(super) fn roll_back(&self, name: &str, index: i64, now: &str) -> Result<(), SkillError> {
        let _turn = self.turn()?;
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
                "there is nothing before this change to go back to".to_owned(),
            ));
        };
        let before = self.text(name)?;
        if before.is_none() {
            self.check_room()?;
        }
        check_text(name, &text)?;
        self.note(
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

    /// The folder of a skill, when it can have this name.
    fn of(&self, name: &str) -> Option<PathBuf> {
        is_skill_name(name).then(|| self.folder.join(name))
    }

    /// Waits until nobody else changes this user's skills, and clears away what somebody left who died over it.
    fn turn(&self) -> Result<File, SkillError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        let turn = hold_folder(&self.folder)?;
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(PASSING) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(turn)
    }

    fn passing(&self) -> io::Result<tempfile::TempDir> {
        tempfile::Builder::new()
            .prefix(PASSING)
            .tempdir_in(&self.folder)
    }

    fn check_room(&self) -> Result<(), SkillError> {
        match fs::read_dir(&self.folder)?.count() {
            count if count < MOST_SKILLS => Ok(()),
            _ => Err(SkillError::Refused(format!(
                "there are {MOST_SKILLS} skills already; remove some first"
            ))),
        }
    }

    /// Writes a skill's file, whose text was checked, in one step, and its folder with it when there is none.
    fn write(&self, name: &str, text: &str) -> Result<(), SkillError> {
        let Some(target) = self.of(name) else {
            return Err(SkillError::NotFound(name.to_owned()));
        };
        if target.is_dir() {
            let mut pending = tempfile::Builder::new()
                .prefix(PASSING)
                .tempfile_in(&target)?;
            pending.write_all(text.as_bytes())?;
            pending.as_file().sync_all()?;
            pending
                .persist(target.join(SKILL_FILE))
                .map_err(|error| error.error)?;
            return Ok(());
        }
        let passing = self.passing()?;
        let staged = passing.path().join(name);
        fs::create_dir(&staged)?;
        fs::write(staged.join(SKILL_FILE), text)?;
        self.put(&staged, &target, name)
    }

    /// Gives a finished folder its name, unless another took it meanwhile.
    fn put(&self, staged: &Path, target: &Path, name: &str) -> Result<(), SkillError> {
        match rustix::fs::renameat_with(CWD, staged, CWD, target, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(SkillError::Exists(name.to_owned())),
            // Some file systems cannot promise it. We hold the folder, so nobody comes between.
            Err(Errno::INVAL | Errno::NOSYS) if !target.exists() => Ok(fs::rename(staged, target)?),
            Err(errno) => Err(io::Error::from(errno).into()),
        }
    }

    fn history_of(&self, name: &str) -> HistoryFile {
        HistoryFile(self.folder.join(".history").join(format!("{name}.jsonl")))
    }

    fn note(&self, name: &str, entry: &HistoryEntry) -> Result<(), SkillError> {
        Ok(self.history_of(name).add(entry)?)
    }
}

/// Refuses a text that is no skill of this name.
fn check_text(name: &str, text: &str) -> Result<(), SkillError> {
    if text.len() as u64 > LONGEST_SKILL_FILE {
        return Err(SkillError::Refused(format!(
            "SKILL.md is longer than {LONGEST_SKILL_FILE} bytes"
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
