//! Reads an accepted archive and writes its content to a new folder.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use zip::read::Config;
use zip::result::ZipError;
use zip::unstable::read::ZipIterable;
use zip::{CompressionMethod, ZipArchive};

use super::error::{ArchiveError, EntryProblem};
use super::limits::{MAX_ARCHIVE_BYTES, MAX_DIRECTORY_BYTES, MAX_ENTRIES, MAX_MEMBER_BYTES};
use super::plan::{EntryFacts, MAX_NAME_BYTES, Plan, PlannedFile, accept};
use crate::sandbox::FileFailure;
use crate::skills::frontmatter::{self, Frontmatter};

/// Maximum size of a skill file, in bytes.
pub(crate) const MAX_SKILL_FILE_BYTES: u64 = 1 << 20;
/// Magic bytes of compiled programs: Linux, Windows, and the macOS variants.
const EXECUTABLE_MAGIC: &[&[u8]] = &[
    b"\x7fELF",
    b"MZ",
    b"\xfe\xed\xfa\xce",
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
];

/// Number of bytes that identify a program.
const MAGIC_BYTES: usize = 4;

/// A text file of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// Path in the archive, with `/`.
    pub path: String,
    /// Text.
    pub text: String,
}

/// A validated archive with a skill.
#[derive(Debug)]
pub struct SkillArchive<R> {
    zip: ZipArchive<R>,
    plan: Plan,
    head: Frontmatter,
}

impl<R: Read + Seek> SkillArchive<R> {
    /// Validates the central directory and reads the skill's file. Writes nothing.
    ///
    /// # Errors
    /// The reason why the archive is rejected.
    pub fn open(reader: R) -> Result<Self, ArchiveError> {
        let (mut zip, _, plan) = open_validated(reader)?;
        let head = frontmatter::check(&skill_text(&mut zip, &plan)?)?;
        Ok(Self { zip, plan, head })
    }

    /// Frontmatter of the skill.
    pub fn head(&self) -> &Frontmatter {
        &self.head
    }

    /// Writes the files to an empty folder that is not shared. On an error, some of them may have
    /// been written.
    ///
    /// # Errors
    /// If an entry differs from the central directory, or the disk is full.
    pub fn unpack(mut self, folder: &Path) -> Result<(), ArchiveError> {
        for file in &self.plan.files {
            let target = folder.join(file.path.as_str());
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent).map_err(FileFailure::from)?;
            }
            let mode = if file.is_executable { 0o755 } else { 0o644 };
            let mut target = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(mode)
                .open(target)
                .map_err(FileFailure::from)?;
            copy(&mut self.zip, file, &mut target)?;
        }
        Ok(())
    }
}

/// Returns the bytes of one file: the one with this name, or else the first one with a name that
/// ends in `/{name}`. `None` if no such file would be installed.
///
/// # Errors
/// The reason why the archive or the file is rejected.
pub(super) fn member(
    reader: impl Read + Seek,
    name: &str,
) -> Result<Option<Vec<u8>>, ArchiveError> {
    let (mut zip, facts, plan) = open_validated(reader)?;
    let has_name = |file: &&PlannedFile| facts[file.entry].name == name;
    let has_suffix = |file: &&PlannedFile| {
        facts[file.entry]
            .name
            .strip_suffix(name)
            .is_some_and(|before| before.ends_with('/'))
    };
    let Some(file) = plan
        .files
        .iter()
        .find(has_name)
        .or_else(|| plan.files.iter().find(has_suffix))
    else {
        return Ok(None);
    };
    if file.bytes > MAX_MEMBER_BYTES {
        return Err(ArchiveError::entry(name, EntryProblem::Large));
    }
    let mut bytes = Vec::new();
    copy(&mut zip, file, &mut bytes)?;
    Ok(Some(bytes))
}

/// Returns the wanted files of an archive in the order of their paths.
///
/// # Errors
/// The reason why the archive or a file is rejected.
pub(super) fn text_files(
    reader: impl Read + Seek,
    max_bytes: u64,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<TextFile>, ArchiveError> {
    let (mut zip, facts, bytes) = open_checked(reader)?;
    let mut files = accept(&facts, bytes, |path| is_wanted(path.as_str()))?;
    zip.validate_header_consistency().map_err(unreadable)?;
    files.sort_by(|a, b| a.path.as_str().cmp(b.path.as_str()));
    if files.iter().map(|file| file.bytes).sum::<u64>() > max_bytes {
        return Err(ArchiveError::LargeFiles { max_bytes });
    }
    let mut read = Vec::with_capacity(files.len());
    for file in files {
        let mut bytes = Vec::new();
        copy(&mut zip, &file, &mut bytes)?;
        let path = file.path.as_str().to_owned();
        let text = String::from_utf8(bytes)
            .map_err(|_| ArchiveError::entry(&path, EntryProblem::NotText))?;
        read.push(TextFile { path, text });
    }
    Ok(read)
}

/// Validates the central directory and plans the files to unpack.
fn open_validated<R: Read + Seek>(
    reader: R,
) -> Result<(ZipArchive<R>, Vec<EntryFacts>, Plan), ArchiveError> {
    let (mut zip, facts, bytes) = open_checked(reader)?;
    let plan = Plan::of(&facts, bytes)?;
    zip.validate_header_consistency().map_err(unreadable)?;
    Ok((zip, facts, plan))
}

/// Reads the central directory, with limits. Returns the size of the archive, too.
fn open_checked<R: Read + Seek>(
    mut reader: R,
) -> Result<(ZipArchive<R>, Vec<EntryFacts>, u64), ArchiveError> {
    let bytes = reader.seek(SeekFrom::End(0)).map_err(FileFailure::from)?;
    if bytes > MAX_ARCHIVE_BYTES {
        return Err(ArchiveError::TooLarge);
    }
    check_entries(&mut reader)?;
    let zip = ZipArchive::new(reader).map_err(unreadable)?;
    if zip.has_duplicate_names() {
        return Err(ArchiveError::Unreadable(
            "two entries have the same name".to_owned(),
        ));
    }
    let facts = (0..zip.len())
        .map(|entry| facts(&zip, entry))
        .collect::<Result<Vec<_>, _>>()?;
    Ok((zip, facts, bytes))
}

/// Checks the central directory entry by entry without storing it: there may be a million long
/// entries.
fn check_entries(reader: &mut (impl Read + Seek)) -> Result<(), ArchiveError> {
    let mut entries = ZipIterable::try_new(reader, Config::default()).map_err(unreadable)?;
    if entries.len() > MAX_ENTRIES {
        return Err(ArchiveError::TooMany {
            entries: entries.len(),
        });
    }
    let mut begin = None;
    for entry in entries.files().map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.name_raw().len() > MAX_NAME_BYTES {
            return Err(ArchiveError::entry(
                &String::from_utf8_lossy(entry.name_raw()),
                EntryProblem::LongName,
            ));
        }
        // Entries are consecutive, each with its name, comment and extra fields.
        let position = entry.central_header_start();
        if position - *begin.get_or_insert(position) > MAX_DIRECTORY_BYTES {
            return Err(ArchiveError::Wordy);
        }
    }
    Ok(())
}

fn facts<R: Read + Seek>(zip: &ZipArchive<R>, entry: usize) -> Result<EntryFacts, ArchiveError> {
    let entry = zip.by_index_data(entry).map_err(unreadable)?;
    Ok(EntryFacts {
        name: entry.name().map_err(unreadable)?.into_owned(),
        bytes: entry.size(),
        packed: entry.compressed_size(),
        mode: entry.unix_mode(),
        is_folder: entry.is_dir(),
        is_encrypted: entry.encrypted(),
        has_known_method: matches!(
            entry.compression(),
            CompressionMethod::Stored | CompressionMethod::Deflated
        ),
    })
}

fn skill_text<R: Read + Seek>(
    zip: &mut ZipArchive<R>,
    plan: &Plan,
) -> Result<String, ArchiveError> {
    let file = &plan.files[plan.skill_file];
    let refused = |problem| ArchiveError::entry(file.path.as_str(), problem);
    if file.bytes > MAX_SKILL_FILE_BYTES {
        return Err(refused(EntryProblem::Bomb));
    }
    let mut text = Vec::new();
    copy(zip, file, &mut text)?;
    String::from_utf8(text).map_err(|_| refused(EntryProblem::Damaged))
}

/// Copies an entry, whose size must match the stated size.
fn copy<R: Read + Seek>(
    zip: &mut ZipArchive<R>,
    file: &PlannedFile,
    to: &mut impl Write,
) -> Result<(), ArchiveError> {
    let refused = |problem| ArchiveError::entry(file.path.as_str(), problem);
    let mut entry = zip
        .by_index(file.entry)
        .map_err(unreadable)?
        .take(file.bytes + 1);
    let mut buffer = [0; 16 * 1024];
    let mut copied: u64 = 0;
    // The first bytes may arrive one by one.
    let mut start: Vec<u8> = Vec::with_capacity(MAGIC_BYTES);
    loop {
        let read = match entry.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return Err(refused(EntryProblem::Damaged)),
        };
        if start.len() < MAGIC_BYTES {
            start.extend(buffer[..read].iter().take(MAGIC_BYTES - start.len()));
            if EXECUTABLE_MAGIC
                .iter()
                .any(|program| start.starts_with(program))
            {
                return Err(refused(EntryProblem::Program));
            }
        }
        copied += read as u64;
        if copied > file.bytes {
            return Err(refused(EntryProblem::Lies));
        }
        to.write_all(&buffer[..read]).map_err(FileFailure::from)?;
    }
    if copied == file.bytes {
        Ok(())
    } else {
        Err(refused(EntryProblem::Lies))
    }
}

fn unreadable(error: ZipError) -> ArchiveError {
    ArchiveError::Unreadable(error.to_string())
}
