//! `extensions_config.json`: MCP servers and skill states. Users and the server both edit this
//! file.
//!
//! Unknown content is preserved, `$VARIABLE` references stay unresolved, and changes are atomic.
//! All functions here may block on the disk.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::file_signature::FileSignature;
use super::folder_lock::lock_folder;
use super::open_keys::OpenKeys;

/// Section of MCP servers.
pub const MCP_SERVERS: &str = "mcpServers";
/// Section of skills.
pub const SKILLS: &str = "skills";

/// Maximum size of the file, in bytes.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Content of the file. It may contain secrets: `Debug` prints names only.
#[derive(Debug, Clone, Default)]
pub struct Extensions(OpenKeys);

impl Extensions {
    /// Returns a section, if it exists and is a map.
    pub fn section(&self, name: &str) -> Option<&Map<String, Value>> {
        self.0.get(name).and_then(Value::as_object)
    }

    /// Changes a section; creates it if it is missing or not a map.
    pub fn change_section<T>(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Map<String, Value>) -> T,
    ) -> T {
        let slot = self.0.slot(name);
        let mut section = match slot.take() {
            Value::Object(section) => section,
            _ => Map::new(),
        };
        let outcome = change(&mut section);
        *slot = Value::Object(section);
        outcome
    }

    /// Returns a copy that is overridden by the `extensions` section of `config.yaml`.
    pub fn overlaid(&self, over: &Map<String, Value>) -> Self {
        let mut all = self.clone();
        for (name, value) in over {
            let name = if name == "mcp_servers" {
                MCP_SERVERS
            } else {
                name
            };
            all.0.insert(name, value.clone());
        }
        all
    }

    /// Returns a copy with each `$VARIABLE` replaced by its value, or by an empty text if it is not
    /// set.
    pub fn resolved(&self, variable: impl Fn(&str) -> Option<String>) -> Self {
        Self(
            self.0
                .iter()
                .map(|(name, value)| (name.clone(), resolve(value, &variable)))
                .collect::<Map<_, _>>()
                .into(),
        )
    }

    /// Returns the state of a skill; `None` if the file does not mention it.
    pub fn skill_state(&self, name: &str) -> Option<bool> {
        self.section(SKILLS)?.get(name)?.get("enabled")?.as_bool()
    }

    /// Enables or disables a skill.
    pub fn switch_skill(&mut self, name: &str, enabled: bool) {
        self.change_section(SKILLS, |skills| {
            match skills.entry(name).or_insert(Value::Null) {
                Value::Object(state) => drop(state.insert("enabled".to_owned(), enabled.into())),
                other => *other = serde_json::json!({ "enabled": enabled }),
            }
        });
    }
}

/// Extensions file, which need not exist yet. A process has a single instance per file.
#[derive(Debug)]
pub struct ExtensionsFile {
    path: PathBuf,
    last_read: Mutex<Option<(FileSignature, Arc<Extensions>)>>,
}

/// Failure to use the file. The texts contain no folder, since clients may read them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtensionsError {
    /// The file cannot be read.
    #[error("{file} cannot be read: {source}")]
    Unreadable {
        /// Name of the file.
        file: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file is malformed.
    #[error("{file} is invalid: {reason}")]
    Invalid {
        /// Name of the file.
        file: String,
        /// Description and position of the error.
        reason: String,
    },
    /// The file cannot be written.
    #[error("{file} cannot be written: {source}")]
    Unwritable {
        /// Name of the file.
        file: String,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl ExtensionsFile {
    /// Creates a handle for the file at this path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            last_read: Mutex::default(),
        }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the current content; empty if there is no file. The file is read only if it has
    /// changed: an unchanged file returns the same `Arc`.
    ///
    /// # Errors
    /// [`ExtensionsError::Unreadable`] and [`ExtensionsError::Invalid`].
    pub fn load(&self) -> Result<Arc<Extensions>, ExtensionsError> {
        let mut last_read = self.last_read.lock();
        let facts = match fs::metadata(&self.path) {
            Ok(facts) => facts,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                *last_read = None;
                return Ok(Arc::default());
            }
            Err(error) => return Err(self.unreadable(error)),
        };
        if let Some((signature, extensions)) = last_read.as_ref()
            && *signature == FileSignature::of(&facts)
        {
            return Ok(extensions.clone());
        }
        let (signature, extensions) = self.read()?;
        let extensions = Arc::new(extensions);
        *last_read = Some((signature, extensions.clone()));
        Ok(extensions)
    }

    /// Changes the content. Concurrent edits, also by other processes, wait for each other. A
    /// failed change leaves the file unchanged.
    ///
    /// # Errors
    /// The errors of [`load`](Self::load), and [`ExtensionsError::Unwritable`].
    pub fn edit<T, E: From<ExtensionsError>>(
        &self,
        change: impl FnOnce(&mut Extensions) -> Result<T, E>,
    ) -> Result<T, E> {
        // A symbolic link is preserved; its target is replaced.
        let target = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let folder = target
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let _lock = lock_folder(folder).map_err(|error| self.unwritable(error))?;
        let mut extensions = if target.exists() {
            self.read()?.1
        } else {
            Extensions::default()
        };
        let outcome = change(&mut extensions)?;
        replace(&target, folder, &extensions.0).map_err(|error| self.unwritable(error))?;
        Ok(outcome)
    }

    fn read(&self) -> Result<(FileSignature, Extensions), ExtensionsError> {
        let open = || {
            let file = File::open(&self.path)?;
            let facts = file.metadata()?;
            let mut text = String::new();
            file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
            Ok((FileSignature::of(&facts), text))
        };
        let (signature, text) = open().map_err(|error| self.unreadable(error))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(self.unreadable(io::ErrorKind::FileTooLarge.into()));
        }
        let map = serde_json::from_str::<Map<String, Value>>(&text).map_err(|error| {
            ExtensionsError::Invalid {
                file: self.name(),
                reason: error.to_string(),
            }
        })?;
        Ok((signature, Extensions(map.into())))
    }

    fn name(&self) -> String {
        self.path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    fn unreadable(&self, source: io::Error) -> ExtensionsError {
        ExtensionsError::Unreadable {
            file: self.name(),
            source,
        }
    }

    fn unwritable(&self, source: io::Error) -> ExtensionsError {
        ExtensionsError::Unwritable {
            file: self.name(),
            source,
        }
    }
}

fn replace(target: &Path, folder: &Path, content: &Map<String, Value>) -> io::Result<()> {
    // A new file is readable only by its owner, since it may contain keys of servers.
    let mut pending = tempfile::NamedTempFile::new_in(folder)?;
    let mut text = serde_json::to_string_pretty(content)?;
    text.push('\n');
    pending.write_all(text.as_bytes())?;
    if let Ok(facts) = fs::metadata(target) {
        pending.as_file().set_permissions(facts.permissions())?;
    }
    pending.as_file().sync_all()?;
    pending.persist(target)?;
    File::open(folder)?.sync_all()
}

fn resolve(value: &Value, variable: &impl Fn(&str) -> Option<String>) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix('$') {
            Some(name) => Value::String(variable(name).unwrap_or_default()),
            None => value.clone(),
        },
        Value::Array(items) => items.iter().map(|item| resolve(item, variable)).collect(),
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| (key.clone(), resolve(value, variable)))
                .collect(),
        ),
        other => other.clone(),
    }
}

#[cfg(test)]
#[path = "extensions_tests.rs"]
mod tests;
