//! What of an archive is taken, decided from what it says of itself. Pure.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use unicode_normalization::UnicodeNormalization;

use super::{ArchiveError, LARGEST_SHOWN, MOST_BYTES};
use crate::sandbox::virtual_paths::{MAX_COMPONENT_BYTES, RelativePath, misleads_a_reader};
use crate::skills::skill::SKILL_FILE;

/// The longest name with its folders, in bytes, and the most folders of one.
pub(super) const LONGEST_NAME: usize = 1_024;
const DEEPEST: usize = 16;
/// An entry of more bytes than this may not be so many times as large as what it is packed into.
const BYTES_WITHOUT_SUSPICION: u64 = 1 << 20;
const MOST_TIMES: u64 = 200;
/// Kinds of files as the mode of an entry tells them.
const KIND: u32 = 0o170_000;
const FILE: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;
const LINK: u32 = 0o120_000;
/// What archives are called that are packed into archives.
const ARCHIVES: &[&str] = &[
    "zip", "skill", "tar", "tgz", "gz", "bz2", "xz", "zst", "7z", "rar", "jar", "war", "whl",
    "cab", "iso",
];

/// What is wrong with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntryProblem {
    /// `/etc/passwd`.
    #[error("has an absolute path")]
    Absolute,
    /// `../x`.
    #[error("has a \"..\" or \".\" in its path, or nothing between slashes")]
    Climbs,
    /// A backslash, a colon, a control character, or one that cannot be seen.
    #[error(
        "has a character in its name that is not allowed, or a blank or dot at the end of a name"
    )]
    OddName,
    /// Its name is too long or has too many folders.
    #[error("has a name that is too long or too deep")]
    LongName,
    /// Another entry has the same name, perhaps in other letters.
    #[error(
        "has the same name as another one, or differs from it in nothing but case or the form of its letters"
    )]
    Twice,
    /// It is a file, and another entry lies in it.
    #[error("is a file and a folder at once")]
    FileAndFolder,
    /// It has a password.
    #[error("is encrypted")]
    Encrypted,
    /// It is packed in a way that skills are not.
    #[error("is compressed by a method other than deflate")]
    Method,
    /// A device, FIFO or socket.
    #[error("is no file and no folder")]
    NotAFile,
    /// It unpacks to far more than there is.
    #[error("unpacks to suspiciously much")]
    Bomb,
    /// It is too large to be shown by itself.
    #[error("is larger than {LARGEST_SHOWN} bytes and cannot be shown")]
    Large,
    /// It is not as large as it says.
    #[error("is not as large as the archive says")]
    Lies,
    /// Its bytes do not fit its checksum.
    #[error("is damaged")]
    Damaged,
    /// It is an archive itself.
    #[error("is an archive in the archive")]
    Archive,
    /// It is a program for a machine.
    #[error("is a compiled program")]
    Program,
    /// A second skill.
    #[error("is a second SKILL.md")]
    NestedSkill,
}

/// What an archive says of one entry.
#[derive(Debug, Clone, Default)]
pub(super) struct EntryFacts {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) packed: u64,
    /// Type and permissions, where it has some.
    pub(super) mode: Option<u32>,
    pub(super) is_folder: bool,
    pub(super) is_encrypted: bool,
    pub(super) has_known_method: bool,
}

/// A file that is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlannedFile {
    /// Which entry it is.
    pub(super) entry: usize,
    /// Where it goes, from the skill's folder on.
    pub(super) path: RelativePath,
    /// How large it has to be.
    pub(super) bytes: u64,
    /// Whether it may be run.
    pub(super) is_executable: bool,
}

/// What is taken: the files, and which of them is the skill's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) files: Vec<PlannedFile>,
    pub(super) skill_file: usize,
}

impl Plan {
    /// Decides on an archive of so many bytes.
    pub(super) fn of(entries: &[EntryFacts], archive_bytes: u64) -> Result<Self, ArchiveError> {
        let mut names = Names::default();
        let mut taken = Vec::new();
        let mut total: u64 = 0;
        for (position, entry) in entries.iter().enumerate() {
            let refused = |problem| ArchiveError::entry(&entry.name, problem);
            let path = path_of(&entry.name).map_err(refused)?;
            let kind = kind_of(entry).map_err(refused)?;
            names.add(&path, kind == FOLDER).map_err(refused)?;
            total = total.saturating_add(entry.bytes);
            // Links are left out, and so is what systems put beside files.
            if kind == FILE && !is_aside(&path) {
                check_content(entry, &path).map_err(refused)?;
                let is_executable = entry.mode.is_some_and(|mode| mode & 0o111 != 0);
                taken.push(PlannedFile {
                    entry: position,
                    path,
                    bytes: entry.bytes,
                    is_executable,
                });
            }
        }
        let is_suspicious =
            total > 16 * BYTES_WITHOUT_SUSPICION && total / archive_bytes.max(1) > MOST_TIMES / 2;
        if total > MOST_BYTES || is_suspicious {
            return Err(ArchiveError::Bomb);
        }
        Self::in_folder(taken)
    }

    /// Takes the only folder at the top for the skill's own, where there is such a one.
    fn in_folder(mut files: Vec<PlannedFile>) -> Result<Self, ArchiveError> {
        let top = |file: &PlannedFile| {
            let mut names = file.path.components();
            let first = names.next().unwrap_or_default().to_owned();
            names.next().map(|_| first)
        };
        let first = files.first().and_then(top);
        if let Some(folder) =
            first.filter(|folder| files.iter().all(|file| top(file).as_ref() == Some(folder)))
        {
            let folder = RelativePath::of_plain_names(&[&folder]);
            for file in &mut files {
                file.path = file.path.beneath(&folder).unwrap_or_default();
            }
        }
        let skill_file = files
            .iter()
            .position(|file| file.path.as_str() == SKILL_FILE)
            .ok_or(ArchiveError::NoSkill)?;
        let is_another = |file: &&PlannedFile| {
            let is_named_so = file
                .path
                .split_last()
                .is_some_and(|(_, name)| name.eq_ignore_ascii_case(SKILL_FILE));
            is_named_so && file.path.as_str() != SKILL_FILE
        };
        match files.iter().find(is_another) {
            Some(other) => Err(ArchiveError::entry(
                other.path.as_str(),
                EntryProblem::NestedSkill,
            )),
            None => Ok(Self { files, skill_file }),
        }
    }
}

/// The names that are taken, as file systems compare them that are less exact than ours: by the folder that one lies in and its folded
/// form. Each name is folded once: some letters become many.
#[derive(Debug, Default)]
struct Names(HashMap<(usize, String), Known>);

#[derive(Debug)]
struct Known {
    number: usize,
    name: String,
    is_folder: bool,
}

impl Names {
    fn add(&mut self, path: &RelativePath, is_folder: bool) -> Result<(), EntryProblem> {
        let mut folder = 0;
        let mut names = path.components().peekable();
        while let Some(name) = names.next() {
            let is_folder = names.peek().is_some() || is_folder;
            let number = self.0.len() + 1;
            let known = self.0.entry((folder, folded(name)));
            let is_new = matches!(known, Entry::Vacant(_));
            let known = known.or_insert_with(|| Known {
                number,
                name: name.to_owned(),
                is_folder,
            });
            match (known.is_folder, is_folder) {
                _ if is_new => {}
                _ if known.name != name => return Err(EntryProblem::Twice),
                (true, true) => {}
                (false, false) => return Err(EntryProblem::Twice),
                _ => return Err(EntryProblem::FileAndFolder),
            }
            folder = known.number;
        }
        Ok(())
    }
}

fn folded(name: &str) -> String {
    if name.is_ascii() {
        name.to_ascii_lowercase()
    } else {
        name.nfkc().flat_map(char::to_lowercase).nfkc().collect()
    }
}

/// Reads an entry's name, which names a place within and nothing else.
fn path_of(name: &str) -> Result<RelativePath, EntryProblem> {
    if name.starts_with('/') {
        return Err(EntryProblem::Absolute);
    }
    if name.contains(['\\', ':'])
        || name
            .chars()
            .any(|c| misleads_a_reader(c) || is_invisible(c))
    {
        return Err(EntryProblem::OddName);
    }
    let name = name.strip_suffix('/').unwrap_or(name);
    let parts: Vec<&str> = name.split('/').collect();
    if parts.iter().any(|part| matches!(*part, "" | "." | "..")) {
        return Err(EntryProblem::Climbs);
    }
    if parts
        .iter()
        .any(|part| part.ends_with(['.', ' ']) || part.starts_with(' '))
    {
        return Err(EntryProblem::OddName);
    }
    if name.len() > LONGEST_NAME
        || parts.len() > DEEPEST
        || parts.iter().any(|part| part.len() > MAX_COMPONENT_BYTES)
    {
        return Err(EntryProblem::LongName);
    }
    RelativePath::parse(name).map_err(|_| EntryProblem::OddName)
}

/// Characters that leave no trace where they stand.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}')
        || matches!(c, '\u{2060}'..='\u{2064}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Files of no skill: hidden ones, and those in which a desktop keeps what its file system has besides.
fn is_aside(path: &RelativePath) -> bool {
    path.components().any(|name| name.starts_with('.'))
        || path.components().next() == Some("__MACOSX")
}

/// `FILE`, `FOLDER` or `LINK`.
fn kind_of(entry: &EntryFacts) -> Result<u32, EntryProblem> {
    match entry.mode.map_or(0, |mode| mode & KIND) {
        LINK => Ok(LINK),
        FOLDER => Ok(FOLDER),
        0 | FILE if entry.is_folder => Ok(FOLDER),
        0 | FILE => Ok(FILE),
        _ => Err(EntryProblem::NotAFile),
    }
}

fn check_content(entry: &EntryFacts, path: &RelativePath) -> Result<(), EntryProblem> {
    let ending = path
        .as_str()
        .rsplit_once('.')
        .map(|(_, ending)| ending.to_ascii_lowercase());
    if entry.is_encrypted {
        Err(EntryProblem::Encrypted)
    } else if !entry.has_known_method {
        Err(EntryProblem::Method)
    } else if entry.bytes > BYTES_WITHOUT_SUSPICION
        && entry.bytes / entry.packed.max(1) > MOST_TIMES
    {
        Err(EntryProblem::Bomb)
    } else if ending.is_some_and(|ending| ARCHIVES.contains(&ending.as_str())) {
        Err(EntryProblem::Archive)
    } else {
        Ok(())
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
