//! Upgrades an older `config.yaml` to the current layout, preserving its values, comments, order
//! and unknown keys.
//!
//! The text is edited in place and then parsed again: unless all previous content is still present,
//! the file is not changed.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use harness::config::CURRENT_CONFIG_VERSION;
use harness::config_file::{Content, Node, SyntaxError};
use serde_json::Value;
use yaml_edit::{Mapping, YamlFile};

/// Commented example, the source of new keys.
pub const EXAMPLE: &str = include_str!("../../../../config.example.yaml");

/// Sections that are never added, because their absence is a choice.
const NEVER_ADDED: [&str; 4] = ["config_version", "models", "tools", "tool_groups"];
/// Version since which class paths start with `deerflow.`.
const RENAMED_PACKAGE: u64 = 2;

/// Changes of an upgrade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upgrade {
    /// Previous version; 0 if the file had none.
    pub from: u64,
    /// Values with a renamed class path, as dotted keys.
    pub renamed: Vec<String>,
    /// Added keys and sections, as dotted keys.
    pub added: Vec<String>,
    /// New text.
    pub text: String,
    /// Path of the backup.
    pub backup: PathBuf,
}

/// Reason why a file was not upgraded. The file is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpgradeError {
    /// The file is not valid YAML.
    #[error("line {}: {}", .0.place.line, .0.message)]
    Syntax(SyntaxError),
    /// The version is not a whole number.
    #[error("`config_version` is not a whole number")]
    Version,
    /// The file was written for a newer build.
    #[error(
        "the file has version {0}, newer than the {CURRENT_CONFIG_VERSION} that this build knows"
    )]
    Newer(u64),
    /// Editing would have changed existing content.
    #[error("the file is written in a way that cannot be edited safely; add the new keys by hand")]
    Unsafe,
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// File.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

/// Upgrades the file at `path` after copying it to `<path>.bak`. Returns `Ok(None)` if it is up to
/// date.
pub fn upgrade_file(path: &Path) -> Result<Option<Upgrade>, UpgradeError> {
    let io = |source| UpgradeError::Io {
        path: path.to_owned(),
        source,
    };
    let path = fs::canonicalize(path).map_err(io)?;
    let text = fs::read_to_string(&path).map_err(io)?;
    let Some(mut upgrade) = upgrade_text(&text)? else {
        return Ok(None);
    };
    upgrade.backup = sibling_path(&path, "", ".bak");
    fs::copy(&path, &upgrade.backup).map_err(|source| UpgradeError::Io {
        path: upgrade.backup.clone(),
        source,
    })?;
    replace_file(&path, &upgrade.text).map_err(io)?;
    Ok(Some(upgrade))
}

/// Upgrades `text`. Returns `Ok(None)` if it is up to date.
fn upgrade_text(text: &str) -> Result<Option<Upgrade>, UpgradeError> {
    let before = Node::parse(text).map_err(UpgradeError::Syntax)?;
    let from = version(&before)?;
    if from > CURRENT_CONFIG_VERSION {
        return Err(UpgradeError::Newer(from));
    }
    let mut changes = Changes::default();
    let mut edited = text.to_owned();
    if from < RENAMED_PACKAGE {
        edited = rename_package(&before, edited, &mut changes);
    }
    edited = add_keys(edited, from, &mut changes)?;
    edited = add_sections(edited, &before, &mut changes);
    if edited == text {
        return Ok(None);
    }

    let after = Node::parse(&edited).map_err(|_| UpgradeError::Unsafe)?;
    let preserved = preserves_values(&before, &after, &mut Vec::new(), &changes.renamed)
        && preserves_comments(text, &edited)
        && version(&after)? == CURRENT_CONFIG_VERSION;
    if !preserved {
        return Err(UpgradeError::Unsafe);
    }
    Ok(Some(Upgrade {
        from,
        renamed: changes
            .renamed
            .iter()
            .map(|path| harness::config::dotted(path))
            .collect(),
        added: changes.added,
        text: edited,
        backup: PathBuf::new(),
    }))
}

#[derive(Default)]
struct Changes {
    renamed: Vec<Vec<String>>,
    added: Vec<String>,
}

fn version(root: &Node) -> Result<u64, UpgradeError> {
    match root
        .entry("config_version")
        .map(|entry| entry.value.to_json())
    {
        None | Some(Value::Null) => Ok(0),
        Some(Value::String(text)) => text.trim().parse().map_err(|_| UpgradeError::Version),
        Some(value) => value.as_u64().ok_or(UpgradeError::Version),
    }
}

/// Rewrites class paths `src.…:Name` to `deerflow.…:Name`, in place.
fn rename_package(root: &Node, text: String, changes: &mut Changes) -> String {
    let mut found = Vec::new();
    collect_old_paths(root, &mut Vec::new(), &mut found);
    if found.is_empty() {
        return text;
    }
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    for (path, line, column) in found {
        let Some(line) = lines.get_mut(line.saturating_sub(1)) else {
            continue;
        };
        let start = line
            .char_indices()
            .nth(column.saturating_sub(1))
            .map_or(line.len(), |(start, _)| start);
        if let Some(at) = line[start..].find("src.") {
            line.replace_range(start + at..start + at + "src.".len(), "deerflow.");
            changes.renamed.push(path);
        }
    }
    lines.join("\n")
}

fn collect_old_paths(
    node: &Node,
    path: &mut Vec<String>,
    found: &mut Vec<(Vec<String>, usize, usize)>,
) {
    match &node.content {
        Content::Text { text, .. } if text.starts_with("src.") && text.contains(':') => {
            let (line, column) = (node.place.line as usize, node.place.column as usize);
            found.push((path.clone(), line, column));
        }
        Content::List(items) => {
            for (position, item) in items.iter().enumerate() {
                path.push(position.to_string());
                collect_old_paths(item, path, found);
                path.pop();
            }
        }
        Content::Map(entries) => {
            for entry in entries {
                path.push(entry.key.clone());
                collect_old_paths(&entry.value, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Sets the version and adds missing keys to existing sections.
fn add_keys(text: String, from: u64, changes: &mut Changes) -> Result<String, UpgradeError> {
    let file = YamlFile::from_str(&text).map_err(|_| UpgradeError::Unsafe)?;
    let Some(root) = file.document().and_then(|document| document.as_mapping()) else {
        return Ok(text);
    };
    if from != CURRENT_CONFIG_VERSION && root.contains_key("config_version") {
        root.set("config_version", CURRENT_CONFIG_VERSION as i64);
    }
    let example = YamlFile::from_str(EXAMPLE).map_err(|_| UpgradeError::Unsafe)?;
    if let Some(example) = example
        .document()
        .and_then(|document| document.as_mapping())
    {
        for section in names(&example) {
            let pair = (example.get_mapping(&section), root.get_mapping(&section));
            if let (Some(example), Some(target)) = pair {
                complete(&target, &example, &section, changes);
            }
        }
    }
    Ok(file.to_string())
}

fn complete(target: &Mapping, example: &Mapping, at: &str, changes: &mut Changes) {
    if target.contains_key("<<") {
        return;
    }
    for key in names(example) {
        let path = format!("{at}.{key}");
        match (target.contains_key(&key), example.get(&key)) {
            (true, _) => {
                if let (Some(target), Some(example)) =
                    (target.get_mapping(&key), example.get_mapping(&key))
                {
                    complete(&target, &example, &path, changes);
                }
            }
            (false, Some(value)) => {
                target.set(&key, value);
                changes.added.push(path);
            }
            (false, None) => {}
        }
    }
}

fn names(mapping: &Mapping) -> Vec<String> {
    mapping
        .keys()
        .filter_map(|key| key.as_scalar().map(|scalar| scalar.as_string()))
        .collect()
}

/// Appends missing sections with their comments from the example.
fn add_sections(mut text: String, before: &Node, changes: &mut Changes) -> String {
    if before.entry("config_version").is_none() {
        text = with_version_on_top(&text);
    }
    for paragraph in EXAMPLE.split("\n\n") {
        let Some(section) = section_of(paragraph) else {
            continue;
        };
        if NEVER_ADDED.contains(&section) || before.entry(section).is_some() {
            continue;
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push('\n');
        text.push_str(paragraph.trim_end());
        text.push('\n');
        changes.added.push(section.to_owned());
    }
    text
}

/// Inserts the version after the opening comment or document marker, before the first section.
fn with_version_on_top(text: &str) -> String {
    let version = format!("config_version: {CURRENT_CONFIG_VERSION}\n");
    let (mark, rest) = match text.strip_prefix('\u{feff}') {
        Some(rest) => ("\u{feff}", rest),
        None => ("", text),
    };
    let start = rest
        .find("\n---\n")
        .map(|at| at + "\n---\n".len())
        .or_else(|| rest.starts_with("---\n").then_some("---\n".len()))
        .unwrap_or(0);
    let (head, tail) = rest.split_at(start);
    format!("{mark}{head}{version}{tail}")
}

/// Returns the key that a paragraph of the example sets.
fn section_of(paragraph: &str) -> Option<&str> {
    paragraph
        .lines()
        .find(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
        .and_then(|line| line.split_once(':'))
        .map(|(key, _)| key)
}

/// Reports whether `after` contains every value of `before`, except for the version and renamed
/// values.
fn preserves_values(
    before: &Node,
    after: &Node,
    path: &mut Vec<String>,
    renamed: &[Vec<String>],
) -> bool {
    if path.len() == 1 && path[0] == "config_version" {
        return true;
    }
    match (&before.content, &after.content) {
        (Content::Map(old), Content::Map(_)) => old.iter().all(|entry| {
            path.push(entry.key.clone());
            let preserved = after
                .entry(&entry.key)
                .is_some_and(|new| preserves_values(&entry.value, &new.value, path, renamed));
            path.pop();
            preserved
        }),
        (Content::List(old), Content::List(new)) => {
            old.len() == new.len()
                && old
                    .iter()
                    .zip(new)
                    .enumerate()
                    .all(|(position, (old, new))| {
                        path.push(position.to_string());
                        let preserved = preserves_values(old, new, path, renamed);
                        path.pop();
                        preserved
                    })
        }
        (Content::Text { text: old, .. }, Content::Text { text: new, .. })
            if renamed.contains(path) =>
        {
            old.strip_prefix("src.") == new.strip_prefix("deerflow.")
        }
        _ => before.to_json() == after.to_json(),
    }
}

/// Reports whether `after` contains every comment line of `before`, in the same order.
fn preserves_comments(before: &str, after: &str) -> bool {
    let mut remaining = after.lines();
    before
        .lines()
        .filter(|line| line.trim_start().starts_with('#'))
        .all(|line| remaining.any(|candidate| candidate.trim() == line.trim()))
}

fn sibling_path(path: &Path, prefix: &str, suffix: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{prefix}{name}{suffix}"))
}

/// Writes `text` next to `path`, then replaces the file atomically.
fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let draft = sibling_path(path, ".", ".upgrading");
    let written = (|| {
        let mut file = fs::File::create(&draft)?;
        file.set_permissions(fs::metadata(path)?.permissions())?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, path)
    })();
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
#[path = "upgrade_tests.rs"]
mod tests;
