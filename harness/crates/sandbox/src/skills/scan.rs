//! Scan for skills: every folder with a `SKILL.md`, at any depth, none nested in another.

use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::io::Read;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::archive::MAX_SKILL_FILE_BYTES;
use super::frontmatter::{self, Frontmatter};
use super::skill::SKILL_FILE;
use crate::sandbox::FileFailure;
use crate::sandbox::safe_fs::{NodeKind, Resolver, SafeDir};
use crate::sandbox::virtual_paths::RelativePath;
use deerflow_core::config::FileSignature;

/// Maximum nesting of scanned folders, and maximum number of entries per scan.
const MAX_DEPTH: usize = 8;
const MAX_ENTRIES: usize = 20_000;
/// Maximum number of cached heads.
const MAX_CACHED: usize = 10_000;

/// Finds skills and re-reads only changed files. One instance per process.
#[derive(Debug)]
pub(super) struct Scanner {
    resolver: Resolver,
    cache: Mutex<HashMap<PathBuf, (FileSignature, Option<Frontmatter>)>>,
    /// Folders whose failure has been logged.
    logged: Mutex<HashSet<PathBuf>>,
}

/// A folder with a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundSkill {
    /// Path relative to the scanned folder.
    pub(super) relative: RelativePath,
    /// Parsed frontmatter.
    pub(super) head: Frontmatter,
}

impl Scanner {
    pub(super) fn new() -> Self {
        Self {
            resolver: Resolver::detect(),
            cache: Mutex::default(),
            logged: Mutex::default(),
        }
    }

    /// Clears the cache.
    pub(super) fn forget(&self) {
        self.cache.lock().clear();
        self.logged.lock().clear();
    }

    /// Returns the text of a skill's file; `None` if it does not exist.
    pub(super) fn text(&self, folder: &Path) -> Result<Option<String>, FileFailure> {
        let file = SafeDir::open_trusted(folder, self.resolver)
            .and_then(|folder| folder.open_read(&RelativePath::of_plain_names(&[SKILL_FILE])));
        match file {
            Err(FileFailure::NotFound | FileFailure::NotDirectory) => Ok(None),
            opened => read_text(opened?.0).map(Some),
        }
    }

    /// Returns the skills beneath a folder, sorted by path; none if the folder does not exist.
    /// Unreadable skills are skipped and logged.
    pub(super) fn scan(&self, root: &Path) -> Result<Vec<FoundSkill>, FileFailure> {
        let start = match SafeDir::open_trusted(root, self.resolver) {
            Err(FileFailure::NotFound) => return Ok(Vec::new()),
            opened => opened?,
        };
        let mut found = Vec::new();
        let mut budget = MAX_ENTRIES;
        self.scan_folder(
            &start,
            root,
            &RelativePath::default(),
            &mut budget,
            &mut found,
        )?;
        Ok(found)
    }

    fn scan_folder(
        &self,
        folder: &SafeDir,
        root: &Path,
        relative: &RelativePath,
        budget: &mut usize,
        found: &mut Vec<FoundSkill>,
    ) -> Result<(), FileFailure> {
        let (mut entries, more) = folder.entries(*budget)?;
        *budget -= entries.len();
        if more {
            tracing::warn!(root = %root.display(), "too many entries to scan for skills; some are skipped");
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        for entry in entries
            .into_iter()
            .filter(|entry| entry.kind == NodeKind::Directory)
        {
            let Ok(name) = entry.name.to_str() else {
                continue;
            };
            if name.starts_with('.') {
                continue;
            }
            let Ok(relative) = relative.join(name) else {
                continue;
            };
            // A failure in one folder does not affect the others.
            if let Err(fault) = self.visit_folder(folder, root, &relative, name, budget, found) {
                self.log_once(root.join(relative.as_str()), &fault);
            }
        }
        Ok(())
    }

    fn log_once(&self, folder: PathBuf, fault: &FileFailure) {
        let mut logged = self.logged.lock();
        if logged.len() < MAX_CACHED && !logged.contains(&folder) {
            tracing::warn!(folder = %folder.display(), %fault, "cannot scan a folder for skills");
            logged.insert(folder);
        }
    }

    fn visit_folder(
        &self,
        parent: &SafeDir,
        root: &Path,
        relative: &RelativePath,
        name: &str,
        budget: &mut usize,
        found: &mut Vec<FoundSkill>,
    ) -> Result<(), FileFailure> {
        let folder = parent.open_dir(&RelativePath::of_plain_names(&[name]))?;
        match folder.open_read(&RelativePath::of_plain_names(&[SKILL_FILE])) {
            Ok((file, facts)) => {
                if let Some(head) = self.head(&root.join(relative.as_str()), file, &facts) {
                    found.push(FoundSkill {
                        relative: relative.clone(),
                        head,
                    });
                }
                Ok(())
            }
            Err(FileFailure::NotFound)
                if relative.components().count() < MAX_DEPTH && *budget > 0 =>
            {
                self.scan_folder(&folder, root, relative, budget, found)
            }
            Err(FileFailure::NotFound) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    fn head(&self, folder: &Path, file: impl Read, facts: &Metadata) -> Option<Frontmatter> {
        let signature = FileSignature::of(facts);
        if let Some((known, head)) = self.cache.lock().get(folder)
            && *known == signature
        {
            return head.clone();
        }
        let head = read_head(file)
            .inspect_err(
                |why| tracing::warn!(skill = %folder.display(), why, "skipping an invalid skill"),
            )
            .ok();
        let mut cache = self.cache.lock();
        if cache.len() >= MAX_CACHED {
            cache.clear();
        }
        cache.insert(folder.to_owned(), (signature, head.clone()));
        head
    }
}

fn read_head(file: impl Read) -> Result<Frontmatter, String> {
    let text = read_text(file).map_err(|error| format!("its SKILL.md cannot be read: {error}"))?;
    frontmatter::parse(&text).map_err(|error| error.to_string())
}

fn read_text(file: impl Read) -> Result<String, FileFailure> {
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    file.take(MAX_SKILL_FILE_BYTES + 1)
        .read_to_end(&mut bytes)?;
    match bytes.len() as u64 {
        bytes if bytes > MAX_SKILL_FILE_BYTES => Err(FileFailure::TooLarge {
            bytes,
            limit: MAX_SKILL_FILE_BYTES,
        }),
        _ => String::from_utf8(bytes).map_err(|_| FileFailure::NotUtf8),
    }
}
