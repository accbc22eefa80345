//! Reads the files of a folder of flows.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File, Metadata};
use std::hash::{Hash, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use chrono::{DateTime, Utc};
use deerflow_domain::flows::MAX_TEXT_BYTES;
use deerflow_gateway::flows::{FlowRules, ProjectFile, SystemSnapshot, is_project_file};
use harness::config::FlowsConfig;

/// Maximum number of folders above a file.
const MAX_DEPTH: usize = 8;
/// Maximum number of entries of all folders.
const MAX_ENTRIES: usize = 10_000;
/// Maximum size of all files together, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// A file of the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FoundFile {
    /// Path relative to the folder, with `/`.
    path: String,
    real: PathBuf,
    bytes: u64,
    /// Time of the last change, in nanoseconds since 1970.
    changed: u128,
}

/// Returns the folder of the system flows of a configuration with this file.
pub(crate) fn folder_of(config: &FlowsConfig, file: Option<&Path>) -> PathBuf {
    let base = file.and_then(Path::parent);
    base.unwrap_or(Path::new(".")).join(&config.path)
}

/// Returns the flows of a folder and its files that are not valid.
///
/// # Errors
/// A folder or a file cannot be read, or the limits are exceeded.
pub(crate) fn snapshot(
    root: &Path,
    rules: &FlowRules,
    now: DateTime<Utc>,
) -> io::Result<SystemSnapshot> {
    Ok(SystemSnapshot::default().after_scan(read(root)?, rules, now))
}

/// Returns a value that differs after most changes of the folder; it reads no file.
///
/// # Errors
/// A folder cannot be read, or there are too many entries.
pub(super) fn fingerprint(root: &Path) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    for file in files(root)? {
        (file.path, file.bytes, file.changed).hash(&mut hasher);
    }
    Ok(hasher.finish())
}

/// Returns the files that may be documents or assets, in the order of their paths. A file that is
/// too large or no UTF-8 text has an empty text. A folder that does not exist has no files.
///
/// # Errors
/// A folder or a file cannot be read, or the limits are exceeded.
pub(crate) fn read(root: &Path) -> io::Result<Vec<ProjectFile>> {
    let files = files(root)?;
    if files.iter().map(|file| file.bytes).sum::<u64>() > MAX_BYTES {
        return Err(io::Error::other(format!(
            "its files have more than {MAX_BYTES} bytes together"
        )));
    }
    let file = |file: FoundFile| {
        Ok(ProjectFile {
            text: text_of(&file)?,
            path: file.path,
        })
    };
    files.into_iter().map(file).collect()
}

fn text_of(file: &FoundFile) -> io::Result<String> {
    let limit = MAX_TEXT_BYTES as u64;
    let mut bytes = Vec::new();
    File::open(&file.real)?
        .take(limit + 1)
        .read_to_end(&mut bytes)?;
    let text = String::from_utf8(bytes).ok();
    Ok(text
        .filter(|text| text.len() as u64 <= limit)
        .unwrap_or_default())
}

fn files(root: &Path) -> io::Result<Vec<FoundFile>> {
    let root = match root.canonicalize() {
        Ok(root) => root,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut walk = Walk {
        root: &root,
        entries: 0,
        found: Vec::new(),
    };
    walk.folder(&root, "", 0)?;
    walk.found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(walk.found)
}

struct Walk<'r> {
    root: &'r Path,
    entries: usize,
    found: Vec<FoundFile>,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, path: &str, depth: usize) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(io::Error::other(format!(
                    "it has more than {MAX_ENTRIES} entries"
                )));
            }
            let Ok(name) = entry?.file_name().into_string() else {
                continue;
            };
            // Orchestrators keep versions of mounted files in folders such as `..data`.
            if name.starts_with("..") {
                continue;
            }
            let inner = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}/{name}")
            };
            // A link that leads nowhere or out of the folder is no file.
            let Ok(real) = folder.join(&name).canonicalize() else {
                continue;
            };
            let Ok(metadata) = real.metadata() else {
                continue;
            };
            if !real.starts_with(self.root) {
                continue;
            }
            if metadata.is_dir() && depth < MAX_DEPTH && is_project_file(&format!("{inner}/x.md")) {
                self.folder(&real, &inner, depth + 1)?;
            } else if metadata.is_file() && is_project_file(&inner) {
                self.found.push(FoundFile {
                    path: inner,
                    bytes: metadata.len(),
                    changed: changed(&metadata),
                    real,
                });
            }
        }
        Ok(())
    }
}

fn changed(metadata: &Metadata) -> u128 {
    let modified = metadata.modified().ok();
    let since = modified.and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_nanos())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn paths(root: &Path) -> Vec<String> {
        let files = read(root).unwrap();
        files.into_iter().map(|file| file.path).collect()
    }

    #[test]
    fn documents_and_assets_are_read_without_leaving_the_folder() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret.yaml"), "meta: {}").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for inner in ["p/.agents-flow/agents", "node_modules", "..data"] {
            fs::create_dir_all(root.join(inner)).unwrap();
        }
        for file in [
            "b.yaml",
            "a.yml",
            "notes.png",
            "p/.agents-flow/agents/x.agent.md",
            "node_modules/c.yaml",
            "..data/mounted.yaml",
        ] {
            fs::write(root.join(file), "meta: {}").unwrap();
        }
        symlink(outside.path(), root.join("out")).unwrap();
        symlink(outside.path().join("secret.yaml"), root.join("out.yaml")).unwrap();
        symlink(root, root.join("p/circle")).unwrap();
        symlink(root.join("..data/mounted.yaml"), root.join("mounted.yaml")).unwrap();
        symlink(root.join("nowhere"), root.join("gone.yaml")).unwrap();
        let found = paths(root);
        let plain: Vec<&str> = found
            .iter()
            .map(String::as_str)
            .filter(|path| !path.contains("circle"))
            .collect();
        assert_eq!(
            plain,
            [
                "a.yml",
                "b.yaml",
                "mounted.yaml",
                "p/.agents-flow/agents/x.agent.md"
            ]
        );
    }

    #[test]
    fn missing_folder_has_no_files() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(paths(&folder.path().join("flows")), Vec::<String>::new());
    }

    #[test]
    fn large_file_and_binary_file_have_no_text() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.yaml"), vec![b'x'; MAX_TEXT_BYTES + 1]).unwrap();
        fs::write(folder.path().join("b.yaml"), [0xff, 0xfe]).unwrap();
        let files = read(folder.path()).unwrap();
        assert!(files.iter().all(|file| file.text.is_empty()), "{files:?}");
        assert_eq!(files.len(), 2);
    }

    #[test]
    fn fingerprint_changes_with_each_file() {
        let folder = tempfile::tempdir().unwrap();
        let seen = || fingerprint(folder.path()).unwrap();
        let empty = seen();
        fs::write(folder.path().join("a.yaml"), "x").unwrap();
        let one = seen();
        fs::write(folder.path().join("a.yaml"), "xy").unwrap();
        let changed = seen();
        assert!(empty != one && one != changed && empty != changed);
        assert_eq!(seen(), changed);
    }
}
