//! Finds the flows of a project: documents, and the prompt assets that they use.

use std::collections::{BTreeSet, HashMap};

use deerflow_domain::flows::{FlowAsset, FlowContent, slug_of};
use deerflow_flow::assets::ASSET_FOLDER;
use serde::de::IgnoredAny;

/// Maximum number of folders above a document.
pub const MAX_PROJECT_DEPTH: usize = 3;
/// Folders in which no flows are.
const SKIPPED_FOLDERS: [&str; 2] = ["node_modules", ".git"];

/// A file of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFile {
    /// Path relative to the project, with `/`.
    pub path: String,
    /// Text.
    pub text: String,
}

/// A flow of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFlow {
    /// Path of the document.
    pub path: String,
    /// Slug of the file's name, if it has one.
    pub slug: Option<String>,
    /// Document, with all assets that it may use.
    pub content: FlowContent,
}

/// Reports whether a file may be a document or an asset.
pub fn is_project_file(path: &str) -> bool {
    let is_skipped = |folder: &str| SKIPPED_FOLDERS.contains(&folder);
    !folders(path).any(is_skipped) && (is_document(path) || is_asset(path))
}

/// Returns the flows among the files, in the order of their paths. YAML and JSON files without the
/// keys `graph` and `meta` are none. Assets are those of the nearest folder above the document that
/// has a folder `.agents-flow`; other texts of that folder, which prompt
/// nodes may name, belong to them.
pub fn flows_of_project(mut files: Vec<ProjectFile>) -> Vec<FoundFlow> {
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let roots: BTreeSet<String> = files.iter().filter_map(|f| project_root(&f.path)).collect();
    files
        .iter()
        .filter(|file| is_document(&file.path) && may_be_flow(&file.text))
        .map(|file| FoundFlow {
            path: file.path.clone(),
            slug: slug_of(stem(&file.path)),
            content: FlowContent::new(file.text.clone(), assets_of(&file.path, &roots, &files)),
        })
        .collect()
}

/// Returns the files of an archive that may be documents or assets. A single folder at the root of
/// the archive is left out of the paths.
pub fn files_of_archive(files: Vec<ProjectFile>) -> Vec<ProjectFile> {
    let tops: BTreeSet<Option<&str>> = files
        .iter()
        .map(|file| file.path.split_once('/').map(|(top, _)| top))
        .collect();
    let is_single = tops.len() == 1 && !tops.contains(&None) && !tops.contains(&Some(ASSET_FOLDER));
    let files = files
        .into_iter()
        .map(|file| match file.path.split_once('/') {
            Some((_, inner)) if is_single => ProjectFile {
                path: inner.to_owned(),
                text: file.text,
            },
            _ => file,
        });
    files.filter(|file| is_project_file(&file.path)).collect()
}

/// Returns the folders of a path, from the outermost one.
fn folders(path: &str) -> impl Iterator<Item = &str> {
    let names = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    names.split('/').filter(|name| !name.is_empty())
}

fn is_document(path: &str) -> bool {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending);
    matches!(ending, Some("yaml" | "yml" | "json")) && folders(path).count() <= MAX_PROJECT_DEPTH
}

fn is_asset(path: &str) -> bool {
    path.ends_with(".md") || path.ends_with(".txt")
}

/// Returns the name of the file without its ending.
fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Reports whether a text has one of the two keys that only flows have at their top level.
fn may_be_flow(text: &str) -> bool {
    const KEYS: [&str; 2] = ["graph", "meta"];
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('{') {
        let fields: Result<HashMap<String, IgnoredAny>, _> = serde_json::from_str(text);
        return match fields {
            Ok(fields) => KEYS.iter().any(|key| fields.contains_key(*key)),
            // Broken JSON, or YAML in braces.
            Err(_) => KEYS.iter().any(|key| text.contains(key)),
        };
    }
    let key = |line: &str| {
        line.split(':')
            .next()
            .map(|key| key.trim_matches(['"', '\'']).to_owned())
    };
    text.lines()
        .filter(|line| line.contains(':'))
        .filter_map(key)
        .any(|key| KEYS.contains(&key.as_str()))
}

/// Returns the folder that contains the asset folder of a path; empty for the outermost one.
fn project_root(path: &str) -> Option<String> {
    let mut root = Vec::new();
    for folder in folders(path) {
        if folder == ASSET_FOLDER {
            return Some(root.join("/"));
        }
        root.push(folder);
    }
    None
}

fn assets_of(document: &str, roots: &BTreeSet<String>, files: &[ProjectFile]) -> Vec<FlowAsset> {
    let is_above = |root: &&String| root.is_empty() || below(root, document).is_some();
    let Some(root) = roots.iter().filter(is_above).max_by_key(|root| root.len()) else {
        return Vec::new();
    };
    let assets = files.iter().filter(|file| is_asset(&file.path));
    let inside = assets.filter_map(|file| {
        Some(FlowAsset {
            path: below(root, &file.path)?.to_owned(),
            text: file.text.clone(),
        })
    });
    inside.collect()
}

/// Returns the path relative to a folder that contains it.
fn below<'p>(folder: &str, path: &'p str) -> Option<&'p str> {
    if folder.is_empty() {
        return Some(path);
    }
    path.strip_prefix(folder)?.strip_prefix('/')
}

#[cfg(test)]
#[path = "project_tests.rs"]
mod tests;
