//! Documents of the run's thread.

use serde_json::{Map, Value};

use super::errors::{failed, invalid};
use crate::flow::adapter::FlowError;
use crate::flow::compiled::LoaderKind;
use crate::flow::documents::{DocumentRules, Documents, project_folder};
use crate::flow::driver::{LoadRequest, TextRequest};
use crate::runtime::agent::RunContext;
use crate::sandbox::{FileHome, ThreadFiles, VirtualPath};

/// Folder of `loader.work-dir`.
const WORKSPACE: &str = "/mnt/user-data/workspace";
/// Maximum depth of folders.
const MAX_DEPTH: usize = 32;
/// Maximum size of a file that is read, whatever the flow allows, in bytes.
const MAX_FILE_BYTES: u64 = 10 << 20;
/// Maximum size of the file of a prompt, in bytes.
const MAX_PROMPT_BYTES: u64 = 256 << 10;

/// Loads the documents of a folder. `None` if the node names no folder and the workspace has no
/// documents, or the kind has no default folder.
pub(super) async fn load(
    home: &FileHome,
    request: &LoadRequest<'_>,
) -> Result<Option<Value>, FlowError> {
    let Some((folder, is_named)) = folder_of(request.kind, request.config)? else {
        return Ok(None);
    };
    let (files, folder) = thread_path(home, request.context, &folder, "directory")?;
    let rules = DocumentRules::read(request.config)
        .map_err(|error| invalid(format!("`filePattern`: {error}")))?;
    let depth = if rules.recursive { MAX_DEPTH } else { 1 };
    let listing = match files.list(&folder, depth).await {
        Ok(listing) => listing,
        Err(error) if error.is_not_found() && !is_named => return Ok(None),
        Err(error) => return Err(failed(error.to_string())),
    };
    let mut documents = Documents::default();
    let prefix = format!("{folder}/");
    for line in listing.lines.iter().filter(|line| !line.ends_with('/')) {
        if documents.is_full() {
            break;
        }
        let inner = line.strip_prefix(&prefix).unwrap_or(line);
        if rules.selects(inner)
            && let Some(text) = text_of(&files, line, rules.max_file_bytes).await
        {
            documents.add(inner, &text);
        }
    }
    let is_empty = documents.is_empty();
    Ok((is_named || !is_empty).then(|| documents.into_value()))
}

/// Reads the file of a prompt node.
pub(super) async fn read_text(
    home: &FileHome,
    request: &TextRequest<'_>,
) -> Result<String, FlowError> {
    let (files, path) = thread_path(home, request.context, request.path, "promptFile")?;
    let bytes = files.read_bytes(&path, MAX_PROMPT_BYTES).await;
    let bytes = bytes.map_err(|error| failed(error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| failed(format!("{path} is not UTF-8 text")))
}

/// Returns the folder of a loader, and whether the node names it.
fn folder_of(
    kind: LoaderKind,
    config: &Map<String, Value>,
) -> Result<Option<(String, bool)>, FlowError> {
    let directory = config.get("directory").and_then(Value::as_str);
    let directory = directory.map(str::trim).filter(|text| !text.is_empty());
    Ok(match (kind, directory, project_folder(config)) {
        (LoaderKind::WorkDir, None, _) => Some((WORKSPACE.to_owned(), false)),
        (_, None, _) => None,
        (LoaderKind::WorkDir, _, Some("")) => Some((WORKSPACE.to_owned(), true)),
        (LoaderKind::WorkDir, _, Some(folder)) => Some((format!("{WORKSPACE}/{folder}"), true)),
        (_, Some(directory), Some(_)) => {
            return Err(invalid(format!(
                "`directory`: the flow's project has no folder {directory:?}; name a path below \
                 /mnt/user-data/"
            )));
        }
        (_, Some(directory), None) => Some((directory.to_owned(), true)),
    })
}

fn thread_path(
    home: &FileHome,
    context: Option<&RunContext>,
    path: &str,
    key: &str,
) -> Result<(ThreadFiles, VirtualPath), FlowError> {
    let Some(run) = context else {
        let message = format!("the flow runs without a thread, so {path} does not exist");
        return Err(failed(message));
    };
    let path = path.trim_end_matches('/');
    let path = VirtualPath::parse(path).map_err(|error| invalid(format!("`{key}`: {error}")))?;
    Ok((home.thread(&run.actor.user_id, &run.thread_id), path))
}

/// Returns the text of a file; `None` if it is too large, no text, or gone.
async fn text_of(files: &ThreadFiles, path: &str, limit: u64) -> Option<String> {
    let path = VirtualPath::parse(path).ok()?;
    let bytes = files.read_bytes(&path, limit.min(MAX_FILE_BYTES)).await;
    String::from_utf8(bytes.ok()?).ok()
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
