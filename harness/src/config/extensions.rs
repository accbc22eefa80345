//! `extensions_config.json`: MCP servers and the state of skills, in a file that people and the server both write.
//!
//! What the server does not know in it stays as it was, `$VARIABLE`s stay unresolved, and a change is there as a whole or not at all.
//! Everything here may block on the disk.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::file_signature::FileSignature;
use super::folder_lock::hold_folder;
use super::open_keys::OpenKeys;

/// The section of MCP servers.
pub const MCP_SERVERS: &str = "mcpServers";
/// The section of skills.
pub const SKILLS: &str = "skills";

/// The longest file that is read.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The content of the file. It may hold secrets: `Debug` shows names only.
#[derive(Debug, Clone, Default)]
pub struct Extensions(OpenKeys);

impl Extensions {
    /// A section, when it is there and is a map.
    pub fn section(&self, name: &str) -> Option<&Map<String, Value>> {
        self.0.get(name).and_then(Value::as_object)
    }

    /// Changes a section; it is made when it is missing or no map.
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
        let given = change(&mut section);
        *slot = Value::Object(section);
        given
    }

    /// The same with what the `extensions` section of `config.yaml` says instead.
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

    /// The same with each `$VARIABLE` replaced by its value, by nothing when it has none.
    pub fn resolved(&self, variable: impl Fn(&str) -> Option<String>) -> Self {
        Self(
            self.0
                .iter()
                .map(|(name, value)| (name.clone(), resolve(value, &variable)))
                .collect::<Map<_, _>>()
                .into(),
        )
    }

    /// Whether a skill is on; nothing when it is not mentioned.
    pub fn skill_state(&self, name: &str) -> Option<bool> {
        self.section(SKILLS)?.get(name)?.get("enabled")?.as_bool()
    }

    /// Switches a skill.
    pub fn switch_skill(&mut self, name: &str, enabled: bool) {
        self.change_section(SKILLS, |skills| {
            match skills.entry(name).or_insert(Value::Null) {
                Value::Object(state) => drop(state.insert("enabled".to_owned(), enabled.into())),
                other => *other = serde_json::json!({ "enabled": enabled }),
            }
        });
    }
}

/// The file, whether it is there yet or not. A process has one of these.
#[derive(Debug)]
pub struct ExtensionsFile {
    path: PathBuf,
    last_read: Mutex<Option<(FileSignature, Arc<Extensions>)>>,
}

/// Why the file cannot be used. The texts name no folder: clients may read them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtensionsError {
    /// It cannot be read.
    #[error("{file} cannot be read: {source}")]
    Unreadable {
        /// The file's name.
        file: String,
        /// What the system says.
        source: io::Error,
    },
    /// It holds something else.
    #[error("{file} is not usable: {reason}")]
    Invalid {
        /// The file's name.
        file: String,
        /// What is wrong with it, and where.
        reason: String,
    },
    /// It cannot be written.
    #[error("{file} cannot be written: {source}")]
    Unwritable {
        /// The file's name.
        file: String,
        /// What the system says.
        source: io::Error,
    },
}

impl ExtensionsFile {
    /// The file at this path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            last_read: Mutex::default(),
        }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says now; nothing when there is no file. Reads it only when it has changed: equal answers are the same `Arc`.
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

    /// Changes what the file says. Whoever else edits it, here or in another process, waits for the end.
    /// A change that fails leaves the file as it was.
    ///
    /// # Errors
    /// As [`load`](Self::load), and [`ExtensionsError::Unwritable`].
    pub fn edit<T, E: From<ExtensionsError>>(
        &self,
        change: impl FnOnce(&mut Extensions) -> Result<T, E>,
    ) -> Result<T, E> {
        // A link stays, and what it leads to is replaced.
        let target = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let folder = target
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let _turn = hold_folder(folder).map_err(|error| self.unwritable(error))?;
        let mut extensions = if target.exists() {
            self.read()?.1
        } else {
            Extensions::default()
        };
        let given = change(&mut extensions)?;
        replace(&target, folder, &extensions.0).map_err(|error| self.unwritable(error))?;
        Ok(given)
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
    // Only its owner reads a new file: servers' keys stand in it.
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
