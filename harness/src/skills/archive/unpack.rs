//! Reading an archive that is taken, and writing what is in it to a fresh folder.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use zip::read::Config;
use zip::result::ZipError;
use zip::unstable::read::ZipIterable;
use zip::{CompressionMethod, ZipArchive};

use super::plan::{EntryFacts, EntryProblem, LONGEST_NAME, Plan, PlannedFile};
use super::{ArchiveError, LARGEST_ARCHIVE, LARGEST_SHOWN, LONGEST_CONTENTS, MOST_ENTRIES};
use crate::sandbox::Fault;
use crate::skills::frontmatter::{self, Frontmatter};

/// The longest skill file, in bytes.
pub(crate) const LONGEST_SKILL_FILE: u64 = 1 << 20;
/// How compiled programs begin: of Linux, of Windows, of macOS in its forms.
const PROGRAMS: &[&[u8]] = &[
    b"\x7fELF",
    b"MZ",
    b"\xfe\xed\xfa\xce",
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
];

/// The bytes of a file that tell whether it is a program.
const TELLING: usize = 4;

/// An archive that holds a skill as it should.
#[derive(Debug)]
pub struct SkillArchive<R> {
    zip: ZipArchive<R>,
    plan: Plan,
    head: Frontmatter,
}

impl<R: Read + Seek> SkillArchive<R> {
    /// Looks through the table of contents and reads the skill's own file. Nothing is written.
    ///
    /// # Errors
    /// Why the archive is refused.
    pub fn open(reader: R) -> Result<Self, ArchiveError> {
        let (mut zip, _, plan) = judged(reader)?;
        let head = frontmatter::check(&skill_text(&mut zip, &plan)?)?;
        Ok(Self { zip, plan, head })
    }

    /// What the skill says of itself.
    pub fn head(&self) -> &Frontmatter {
        &self.head
    }

    /// Writes the files to a folder that is empty and nobody else's. When it fails, part of them may be there.
    ///
    /// # Errors
    /// When an entry is not what it said it was, or the disk is full.
    pub fn unpack(mut self, folder: &Path) -> Result<(), ArchiveError> {
        for file in &self.plan.files {
            let target = folder.join(file.path.as_str());
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent).map_err(Fault::from)?;
            }
            let mode = if file.is_executable { 0o755 } else { 0o644 };
            let mut target = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(mode)
                .open(target)
                .map_err(Fault::from)?;
            copy(&mut self.zip, file, &mut target)?;
        }
        Ok(())
    }
}

/// The bytes of one file: the one of this name in the archive, or the first whose name ends in it. `None` when there is no such file
/// among those that would be installed.
///
/// # Errors
/// Why the archive, or the file, is refused.
pub(super) fn member(
    reader: impl Read + Seek,
    name: &str,
) -> Result<Option<Vec<u8>>, ArchiveError> {
    let (mut zip, facts, plan) = judged(reader)?;
    let called = |file: &&PlannedFile| facts[file.entry].name == name;
    let ends_so = |file: &&PlannedFile| {
        facts[file.entry]
            .name
            .strip_suffix(name)
            .is_some_and(|before| before.ends_with('/'))
    };
    let Some(file) = plan
        .files
        .iter()
        .find(called)
        .or_else(|| plan.files.iter().find(ends_so))
    else {
        return Ok(None);
    };
    if file.bytes > LARGEST_SHOWN {
        return Err(ArchiveError::entry(name, EntryProblem::Large));
    }
    let mut bytes = Vec::new();
    copy(&mut zip, file, &mut bytes)?;
    Ok(Some(bytes))
}

/// Decides from the table of contents whether the archive is taken, and what of it.
fn judged<R: Read + Seek>(
    mut reader: R,
) -> Result<(ZipArchive<R>, Vec<EntryFacts>, Plan), ArchiveError> {
    let bytes = reader.seek(SeekFrom::End(0)).map_err(Fault::from)?;
    if bytes > LARGEST_ARCHIVE {
        return Err(ArchiveError::TooLarge);
    }
    check_entries(&mut reader)?;
    let mut zip = ZipArchive::new(reader).map_err(unreadable)?;
    if zip.has_duplicate_names() {
        return Err(ArchiveError::Unreadable(
            "two entries have one name".to_owned(),
        ));
    }
    let facts = (0..zip.len())
        .map(|entry| facts(&zip, entry))
        .collect::<Result<Vec<_>, _>>()?;
    let plan = Plan::of(&facts, bytes)?;
    zip.validate_header_consistency().map_err(unreadable)?;
    Ok((zip, facts, plan))
}

/// Reads the heads in the table of contents one by one, without keeping them: there may be a million, and each may be long.
fn check_entries(reader: &mut (impl Read + Seek)) -> Result<(), ArchiveError> {
    let mut entries = ZipIterable::try_new(reader, Config::default()).map_err(unreadable)?;
    if entries.len() > MOST_ENTRIES {
        return Err(ArchiveError::TooMany {
            entries: entries.len(),
        });
    }
    let mut begin = None;
    for entry in entries.files().map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.name_raw().len() > LONGEST_NAME {
            return Err(ArchiveError::entry(
                &String::from_utf8_lossy(entry.name_raw()),
                EntryProblem::LongName,
            ));
        }
        // One stands behind the other, with its name, its comment and whatever else it says.
        let place = entry.central_header_start();
        if place - *begin.get_or_insert(place) > LONGEST_CONTENTS {
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
    if file.bytes > LONGEST_SKILL_FILE {
        return Err(refused(EntryProblem::Bomb));
    }
    let mut text = Vec::new();
    copy(zip, file, &mut text)?;
    String::from_utf8(text).map_err(|_| refused(EntryProblem::Damaged))
}

/// Copies an entry that has to be as large as it was said to be.
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
    // The first bytes may come one by one.
    let mut start: Vec<u8> = Vec::with_capacity(TELLING);
    loop {
        let read = match entry.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return Err(refused(EntryProblem::Damaged)),
        };
        if start.len() < TELLING {
            start.extend(buffer[..read].iter().take(TELLING - start.len()));
            if PROGRAMS.iter().any(|program| start.starts_with(program)) {
                return Err(refused(EntryProblem::Program));
            }
        }
        copied += read as u64;
        if copied > file.bytes {
            return Err(refused(EntryProblem::Lies));
        }
        to.write_all(&buffer[..read]).map_err(Fault::from)?;
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
