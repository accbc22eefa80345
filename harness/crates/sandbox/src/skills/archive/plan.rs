//! Selects the files of an archive that are unpacked, from its central directory. Pure.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use unicode_normalization::UnicodeNormalization;

use super::error::{ArchiveError, EntryProblem};
use super::limits::MAX_UNPACKED_BYTES;
use crate::sandbox::virtual_paths::{MAX_COMPONENT_BYTES, RelativePath, is_misleading_char};
use crate::skills::skill::SKILL_FILE;

/// Maximum length of a full entry name in bytes, and maximum number of its folders.
pub(super) const MAX_NAME_BYTES: usize = 1_024;
const MAX_DEPTH: usize = 16;
/// The compression ratio of entries above this size is limited.
const RATIO_CHECK_BYTES: u64 = 1 << 20;
const MAX_RATIO: u64 = 200;
/// File type bits of an entry's mode.
const TYPE_MASK: u32 = 0o170_000;
const FILE: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;
const LINK: u32 = 0o120_000;
/// Suffixes of archives, which are rejected inside an archive.
const ARCHIVES: &[&str] = &[
    "zip", "skill", "tar", "tgz", "gz", "bz2", "xz", "zst", "7z", "rar", "jar", "war", "whl",
    "cab", "iso",
];

/// Central directory data of an entry.
#[derive(Debug, Clone, Default)]
pub(super) struct EntryFacts {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) packed: u64,
    /// Type and permissions, if present.
    pub(super) mode: Option<u32>,
    pub(super) is_folder: bool,
    pub(super) is_encrypted: bool,
    pub(super) has_known_method: bool,
}

/// A file to unpack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlannedFile {
    /// Index of the entry.
    pub(super) entry: usize,
    /// Target path relative to the skill's folder.
    pub(super) path: RelativePath,
    /// Exact size in bytes.
    pub(super) bytes: u64,
    /// `true` if it gets the executable permission.
    pub(super) is_executable: bool,
}

/// Files to unpack, and the index of the skill's own file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) files: Vec<PlannedFile>,
    pub(super) skill_file: usize,
}

impl Plan {
    /// Plans an archive of the given size.
    pub(super) fn of(entries: &[EntryFacts], archive_bytes: u64) -> Result<Self, ArchiveError> {
        Self::in_folder(accept(entries, archive_bytes, |path| !is_skipped(path))?)
    }

    /// Strips the single top-level folder, if there is one.
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

/// Validates all entries of an archive of the given size, and returns the files that are wanted.
/// Links are never wanted.
pub(super) fn accept(
    entries: &[EntryFacts],
    archive_bytes: u64,
    is_wanted: impl Fn(&RelativePath) -> bool,
) -> Result<Vec<PlannedFile>, ArchiveError> {
    let mut names = Names::default();
    let mut files = Vec::new();
    let mut total: u64 = 0;
    for (position, entry) in entries.iter().enumerate() {
        let refused = |problem| ArchiveError::entry(&entry.name, problem);
        let path = path_of(&entry.name).map_err(refused)?;
        let kind = kind_of(entry).map_err(refused)?;
        names.add(&path, kind == FOLDER).map_err(refused)?;
        total = total.saturating_add(entry.bytes);
        if kind == FILE && is_wanted(&path) {
            check_content(entry, &path).map_err(refused)?;
            let is_executable = entry.mode.is_some_and(|mode| mode & 0o111 != 0);
            files.push(PlannedFile {
                entry: position,
                path,
                bytes: entry.bytes,
                is_executable,
            });
        }
    }
    let is_suspicious =
        total > 16 * RATIO_CHECK_BYTES && total / archive_bytes.max(1) > MAX_RATIO / 2;
    if total > MAX_UNPACKED_BYTES || is_suspicious {
        return Err(ArchiveError::Bomb);
    }
    Ok(files)
}

/// Names in use, compared as on case-insensitive and normalising file systems: by parent folder and
/// folded form. Each name is folded once, because folding may lengthen it.
#[derive(Debug, Default)]
struct Names(HashMap<(usize, String), UsedName>);

#[derive(Debug)]
struct UsedName {
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
            let known = known.or_insert_with(|| UsedName {
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

/// Parses an entry name, which must be a plain relative path.
fn path_of(name: &str) -> Result<RelativePath, EntryProblem> {
    if name.starts_with('/') {
        return Err(EntryProblem::Absolute);
    }
    if name.contains(['\\', ':'])
        || name
            .chars()
            .any(|c| is_misleading_char(c) || is_invisible(c))
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
    if name.len() > MAX_NAME_BYTES
        || parts.len() > MAX_DEPTH
        || parts.iter().any(|part| part.len() > MAX_COMPONENT_BYTES)
    {
        return Err(EntryProblem::LongName);
    }
    RelativePath::parse(name).map_err(|_| EntryProblem::OddName)
}

/// Reports whether a character is invisible.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}')
        || matches!(c, '\u{2060}'..='\u{2064}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Reports whether a file of a skill is hidden, or metadata of an operating system.
fn is_skipped(path: &RelativePath) -> bool {
    path.components().any(|name| name.starts_with('.'))
        || path.components().next() == Some("__MACOSX")
}

/// Returns `FILE`, `FOLDER` or `LINK`.
fn kind_of(entry: &EntryFacts) -> Result<u32, EntryProblem> {
    match entry.mode.map_or(0, |mode| mode & TYPE_MASK) {
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
    } else if entry.bytes > RATIO_CHECK_BYTES && entry.bytes / entry.packed.max(1) > MAX_RATIO {
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
