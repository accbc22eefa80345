//! Documents of a folder, as loaders publish them: which files, and how much of them.

use std::io;

use globset::{GlobBuilder, GlobMatcher};
use serde_json::{Map, Value, json};

use crate::assets::AssetFiles;
use crate::bounded::prefix;

/// Maximum documents of a loader.
pub const MAX_DOCUMENTS: usize = 200;
/// Maximum size of all documents of a loader together, in bytes: that of a port.
pub const MAX_DOCUMENTS_BYTES: usize = 256 * 1024;
/// Maximum folders that are read.
const MAX_FOLDERS: usize = 1_000;
/// Estimated size of a document's other fields, in bytes.
const ENTRY_BYTES: usize = 64;
/// Folders that are not read, besides those that begin with a dot.
const SKIPPED_FOLDER: &str = "node_modules";

/// Rules by which a loader selects files.
#[derive(Debug, Clone)]
pub struct DocumentRules {
    pattern: GlobMatcher,
    /// `true` if the pattern describes names, not paths.
    is_of_names: bool,
    /// `true` if folders in the folder are read.
    pub recursive: bool,
    /// Maximum size of a file in bytes; larger files are no documents.
    pub max_file_bytes: u64,
}

/// Error: a file pattern is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a pattern such as **/*.md: {0}")]
pub struct InvalidPattern(String);

impl DocumentRules {
    /// Reads the settings `filePattern`, `recursive` and `maxFileSize` of a loader. A pattern
    /// without `/` describes names.
    ///
    /// # Errors
    /// The pattern is not valid.
    pub fn read(config: &Map<String, Value>) -> Result<Self, InvalidPattern> {
        let pattern = config.get("filePattern").and_then(Value::as_str);
        let pattern = pattern.unwrap_or("**/*").trim_start_matches("./");
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        let glob = glob.map_err(|error| InvalidPattern(error.kind().to_string()))?;
        Ok(Self {
            pattern: glob.compile_matcher(),
            is_of_names: !pattern.contains('/'),
            recursive: config
                .get("recursive")
                .and_then(Value::as_bool)
                .unwrap_or(true),
            max_file_bytes: config
                .get("maxFileSize")
                .and_then(Value::as_u64)
                .unwrap_or(u64::MAX),
        })
    }

    /// Reports whether a file is a document, by its path in the folder.
    pub fn selects(&self, path: &str) -> bool {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let is_in_reach = folder.is_empty() || self.recursive;
        is_in_reach
            && self
                .pattern
                .is_match(if self.is_of_names { name } else { path })
    }
}

/// Documents of one loader, within the limits.
#[derive(Debug, Clone, Default)]
pub struct Documents {
    entries: Vec<Value>,
    bytes: usize,
}

impl Documents {
    /// Reports whether no more documents are accepted.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= MAX_DOCUMENTS || self.bytes >= MAX_DOCUMENTS_BYTES
    }

    /// Reports whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a document, unless the limits are reached. The document that crosses the limit is
    /// truncated.
    pub fn add(&mut self, path: &str, text: &str) {
        if self.is_full() {
            return;
        }
        let used = self.bytes + path.len() + ENTRY_BYTES;
        let room = MAX_DOCUMENTS_BYTES.saturating_sub(used);
        let content = prefix(text, room);
        let mut entry = json!({"path": path, "content": content, "size": text.len()});
        if content.len() < text.len() {
            entry["truncated"] = true.into();
            self.bytes = MAX_DOCUMENTS_BYTES;
        } else {
            self.bytes = used + content.len();
        }
        self.entries.push(entry);
    }

    /// Returns the value of the loader's port.
    pub fn into_value(self) -> Value {
        Value::Array(self.entries)
    }
}

/// Returns the folder of the flow's project that a loader names: a relative `directory`, without
/// `./` and a final `/`.
pub fn project_folder(config: &Map<String, Value>) -> Option<&str> {
    let folder = config.get("directory")?.as_str()?.trim();
    if folder.is_empty() || folder.starts_with('/') {
        return None;
    }
    let folder = folder.trim_start_matches("./").trim_end_matches('/');
    Some(if folder == "." { "" } else { folder })
}

/// Returns the paths of a project's documents, in order, at most [`MAX_DOCUMENTS`]. `None` if the
/// project has no such folder.
///
/// # Errors
/// A folder cannot be read, or there are too many folders.
pub fn project_documents(
    project: &dyn AssetFiles,
    folder: &str,
    rules: &DocumentRules,
) -> io::Result<Option<Vec<String>>> {
    if project.list(folder)?.is_none() {
        return Ok(None);
    }
    let (mut found, mut folders, mut seen) = (Vec::new(), vec![folder.to_owned()], 0);
    while let Some(current) = folders.pop() {
        seen += 1;
        if seen > MAX_FOLDERS {
            let message = format!("the folder has more than {MAX_FOLDERS} folders");
            return Err(io::Error::other(message));
        }
        for entry in project.list(&current)?.unwrap_or_default() {
            let path = join(&current, &entry.name);
            let is_skipped = entry.name.starts_with('.') || entry.name == SKIPPED_FOLDER;
            if entry.is_folder {
                folders.extend((rules.recursive && !is_skipped).then_some(path));
            } else if rules.selects(below(folder, &path)) {
                found.push(path);
            }
        }
    }
    found.sort_unstable();
    found.truncate(MAX_DOCUMENTS);
    Ok(Some(found))
}

/// Reads the documents of a project's folder. Files that are no text are none.
///
/// # Errors
/// As [`project_documents`].
pub fn read_project(
    project: &dyn AssetFiles,
    folder: &str,
    rules: &DocumentRules,
) -> io::Result<Option<Value>> {
    let Some(paths) = project_documents(project, folder, rules)? else {
        return Ok(None);
    };
    let mut documents = Documents::default();
    for path in paths {
        if documents.is_full() {
            break;
        }
        let text = project.read(&path).ok();
        if let Some(text) = text.filter(|text| text.len() as u64 <= rules.max_file_bytes) {
            documents.add(below(folder, &path), &text);
        }
    }
    Ok(Some(documents.into_value()))
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

/// Returns a path relative to a folder above it.
fn below<'p>(folder: &str, path: &'p str) -> &'p str {
    let inner = path.strip_prefix(folder).unwrap_or(path);
    inner.trim_start_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets::MemoryAssets;

    fn rules(config: Value) -> DocumentRules {
        DocumentRules::read(config.as_object().unwrap()).unwrap()
    }

    fn project() -> MemoryAssets {
        MemoryAssets::new([
            ("docs/b.md", "B"),
            ("docs/a/c.txt", "C"),
            ("docs/.hidden/d.md", "D"),
            ("other.md", "O"),
        ])
    }

    #[test]
    fn documents_are_selected_by_pattern_and_depth() {
        let paths = |config: Value| project_documents(&project(), "docs", &rules(config)).unwrap();
        let owned = |paths: &[&str]| Some(paths.iter().map(|path| (*path).to_owned()).collect());
        assert_eq!(paths(json!({})), owned(&["docs/a/c.txt", "docs/b.md"]));
        assert_eq!(
            paths(json!({"filePattern": "*.txt"})),
            owned(&["docs/a/c.txt"])
        );
        assert_eq!(paths(json!({"recursive": false})), owned(&["docs/b.md"]));
        let none = project_documents(&project(), "none", &rules(json!({}))).unwrap();
        assert_eq!(none, None);
    }

    #[test]
    fn paths_of_documents_are_relative_to_the_folder() {
        let found = read_project(&project(), "docs", &rules(json!({}))).unwrap();
        let expected = json!([
            {"path": "a/c.txt", "content": "C", "size": 1},
            {"path": "b.md", "content": "B", "size": 1},
        ]);
        assert_eq!(found, Some(expected));
        let all = read_project(&project(), "", &rules(json!({}))).unwrap();
        assert_eq!(all.unwrap().as_array().unwrap().len(), 3);
    }

    #[test]
    fn document_that_crosses_the_limit_is_truncated() {
        let mut documents = Documents::default();
        documents.add("a", &"é".repeat(MAX_DOCUMENTS_BYTES));
        documents.add("b", "x");
        let value = documents.into_value();
        assert_eq!(value.as_array().unwrap().len(), 1);
        assert_eq!(value[0]["truncated"], true);
        assert_eq!(value[0]["size"], 2 * MAX_DOCUMENTS_BYTES);
        assert!(value.to_string().len() <= MAX_DOCUMENTS_BYTES);
    }

    #[test]
    fn broken_pattern_and_large_file_are_refused() {
        let config = json!({"filePattern": "[a"});
        assert!(DocumentRules::read(config.as_object().unwrap()).is_err());
        let small = rules(json!({"maxFileSize": 0}));
        let found = read_project(&project(), "docs", &small).unwrap();
        assert_eq!(found, Some(json!([])));
    }

    #[test]
    fn relative_directories_name_folders_of_the_project() {
        let folder = |directory: &str| {
            let config = json!({"directory": directory});
            project_folder(config.as_object().unwrap()).map(str::to_owned)
        };
        assert_eq!(folder("./docs/"), Some("docs".to_owned()));
        assert_eq!(folder("."), Some(String::new()));
        assert_eq!(folder("/mnt/user-data/uploads"), None);
        assert_eq!(folder(" "), None);
    }
}
