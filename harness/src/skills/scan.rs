//! Finding skills: every folder with a `SKILL.md`, however deep, and none within another.

use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::io::Read;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::archive::LONGEST_SKILL_FILE;
use super::frontmatter::{self, Frontmatter};
use super::skill::SKILL_FILE;
use crate::config::FileSignature;
use crate::sandbox::Fault;
use crate::sandbox::safe_fs::{NodeKind, Resolver, SafeDir};
use crate::sandbox::virtual_paths::RelativePath;

/// Folders within folders that are looked into, and entries that one look goes through.
const DEEPEST: usize = 8;
const MOST_ENTRIES: usize = 20_000;
/// Heads that are remembered.
const MOST_KNOWN: usize = 10_000;

/// Looks for skills, and reads again only what has changed. A process has one of these.
#[derive(Debug)]
pub(super) struct Scanner {
    resolver: Resolver,
    known: Mutex<HashMap<PathBuf, (FileSignature, Option<Frontmatter>)>>,
    /// Folders that the log tells of already.
    told: Mutex<HashSet<PathBuf>>,
}

/// A folder with a skill in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The way from where the look began.
    pub(super) way: RelativePath,
    /// What its file says.
    pub(super) head: Frontmatter,
}

impl Scanner {
    pub(super) fn new() -> Self {
        Self {
            resolver: Resolver::detect(),
            known: Mutex::default(),
            told: Mutex::default(),
        }
    }

    /// Reads everything anew next time.
    pub(super) fn forget(&self) {
        self.known.lock().clear();
        self.told.lock().clear();
    }

    /// The whole text of a skill's file; nothing when it is gone.
    pub(super) fn text(&self, folder: &Path) -> Result<Option<String>, Fault> {
        let file = SafeDir::open_trusted(folder, self.resolver)
            .and_then(|folder| folder.open_read(&RelativePath::of_plain_names(&[SKILL_FILE])));
        match file {
            Err(Fault::NotFound | Fault::NotDirectory) => Ok(None),
            opened => read_text(opened?.0).map(Some),
        }
    }

    /// The skills beneath a folder, in the order of their paths; none when there is no such folder. Skills that cannot be read are
    /// left out, and the log says why.
    pub(super) fn scan(&self, root: &Path) -> Result<Vec<Found>, Fault> {
        let start = match SafeDir::open_trusted(root, self.resolver) {
            Err(Fault::NotFound) => return Ok(Vec::new()),
            opened => opened?,
        };
        let mut found = Vec::new();
        let mut left = MOST_ENTRIES;
        self.look(
            &start,
            root,
            &RelativePath::default(),
            &mut left,
            &mut found,
        )?;
        Ok(found)
    }

    fn look(
        &self,
        folder: &SafeDir,
        root: &Path,
        way: &RelativePath,
        left: &mut usize,
        found: &mut Vec<Found>,
    ) -> Result<(), Fault> {
        let (mut entries, more) = folder.entries(*left)?;
        *left -= entries.len();
        if more {
            tracing::warn!(root = %root.display(), "there is more beneath this folder than is looked through for skills");
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
            let Ok(way) = way.join(name) else { continue };
            // Whatever is wrong with one folder, others have their skills.
            if let Err(fault) = self.look_into(folder, root, &way, name, left, found) {
                self.tell(root.join(way.as_str()), &fault);
            }
        }
        Ok(())
    }

    fn tell(&self, folder: PathBuf, fault: &Fault) {
        let mut told = self.told.lock();
        if told.len() < MOST_KNOWN && !told.contains(&folder) {
            tracing::warn!(folder = %folder.display(), %fault, "this folder cannot be looked into for skills");
            told.insert(folder);
        }
    }

    fn look_into(
        &self,
        parent: &SafeDir,
        root: &Path,
        way: &RelativePath,
        name: &str,
        left: &mut usize,
        found: &mut Vec<Found>,
    ) -> Result<(), Fault> {
        let folder = parent.open_dir(&RelativePath::of_plain_names(&[name]))?;
        match folder.open_read(&RelativePath::of_plain_names(&[SKILL_FILE])) {
            Ok((file, facts)) => {
                if let Some(head) = self.head(&root.join(way.as_str()), file, &facts) {
                    found.push(Found {
                        way: way.clone(),
                        head,
                    });
                }
                Ok(())
            }
            Err(Fault::NotFound) if way.components().count() < DEEPEST && *left > 0 => {
                self.look(&folder, root, way, left, found)
            }
            Err(Fault::NotFound) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    fn head(&self, folder: &Path, file: impl Read, facts: &Metadata) -> Option<Frontmatter> {
        let signature = FileSignature::of(facts);
        if let Some((known, head)) = self.known.lock().get(folder)
            && *known == signature
        {
            return head.clone();
        }
        let head = read_head(file)
            .inspect_err(
                |why| tracing::warn!(skill = %folder.display(), why, "this skill is left out"),
            )
            .ok();
        let mut known = self.known.lock();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(folder.to_owned(), (signature, head.clone()));
        head
    }
}

fn read_head(file: impl Read) -> Result<Frontmatter, String> {
    let text = read_text(file).map_err(|error| format!("its SKILL.md cannot be read: {error}"))?;
    frontmatter::parse(&text).map_err(|error| error.to_string())
}

fn read_text(file: impl Read) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    file.take(LONGEST_SKILL_FILE + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 {
        bytes if bytes > LONGEST_SKILL_FILE => Err(Fault::TooLarge {
            bytes,
            limit: LONGEST_SKILL_FILE,
        }),
        _ => String::from_utf8(bytes).map_err(|_| Fault::NotUtf8),
    }
}
