//! Sub-flows of a run: the files of a folder.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use deerflow_domain::flows::slug_of;
use deerflow_flow::adapter::{ErrorCategory, FlowError};
use deerflow_flow::binding::KnownAdapters;
use deerflow_flow::compiled::CompiledFlow;
use deerflow_flow::driver::FlowSource;
use parking_lot::Mutex;

use super::document::FlowFile;
use super::report::finding_line;

/// Flows of a folder by the slugs of their file names. Each file is read once.
pub(super) struct FolderFlows {
    folder: PathBuf,
    adapters: Arc<dyn KnownAdapters + Send + Sync>,
    compiled: Mutex<HashMap<String, Arc<CompiledFlow>>>,
}

impl FolderFlows {
    pub(super) fn new(folder: PathBuf, adapters: Arc<dyn KnownAdapters + Send + Sync>) -> Self {
        Self {
            folder,
            adapters,
            compiled: Mutex::default(),
        }
    }

    fn compile(&self, path: &Path) -> Result<Arc<CompiledFlow>, Box<FlowError>> {
        let file = FlowFile::read(path).map_err(|error| Box::new(unreadable(path, &error)))?;
        let compiled = file.compile(&*self.adapters, false).map_err(|validation| {
            let first = validation.errors.first();
            let problem = first.map(|error| finding_line(&path.display(), "error", error));
            Box::new(invalid(problem.unwrap_or_default()))
        })?;
        Ok(compiled.flow)
    }
}

impl fmt::Debug for FolderFlows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FolderFlows")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl FlowSource for FolderFlows {
    async fn get(&self, flow_id: &str) -> Result<Option<Arc<CompiledFlow>>, FlowError> {
        if let Some(flow) = self.compiled.lock().get(flow_id) {
            return Ok(Some(flow.clone()));
        }
        let found =
            find(&self.folder, flow_id).map_err(|error| unreadable(&self.folder, &error))?;
        let Some(path) = found else { return Ok(None) };
        let flow = self.compile(&path).map_err(|error| *error)?;
        self.compiled
            .lock()
            .insert(flow_id.to_owned(), flow.clone());
        Ok(Some(flow))
    }
}

/// Returns the file of a slug; of several, the first in the order of paths.
fn find(folder: &Path, slug: &str) -> io::Result<Option<PathBuf>> {
    let mut found = None;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let is_flow = matches!(ending, Some("yaml" | "yml" | "json"))
            && stem.and_then(slug_of).as_deref() == Some(slug);
        if is_flow && found.as_ref().is_none_or(|first| path < *first) {
            found = Some(path);
        }
    }
    Ok(found)
}

fn unreadable(path: &Path, error: &io::Error) -> FlowError {
    invalid(format!("cannot read {}: {error}", path.display()))
}

fn invalid(message: String) -> FlowError {
    FlowError::new("subflow_invalid", ErrorCategory::Validation, message)
}
