//! A flow's file and its project.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use deerflow_flow::assets::{ASSET_FOLDER, FolderAssets, PromptAssetManifest, scan};
use deerflow_flow::binding::KnownAdapters;
use deerflow_flow::compile::{Compiled, compile_text};
use deerflow_flow::finding::{Finding, FindingCode, Validation};
use deerflow_flow::schema::MAX_BYTES;
use deerflow_flow::validate::{Options, validate_text};

/// Name of a folder of flows, above which no project is searched.
const FLOWS_FOLDER: &str = "flows";

/// Text of a flow's file, and the assets of its project.
pub(super) struct FlowFile {
    text: Result<String, Validation>,
    project: Option<FolderAssets>,
    manifest: PromptAssetManifest,
}

impl FlowFile {
    /// Reads a file. A file that is no UTF-8 text or too large is readable and not valid.
    ///
    /// # Errors
    /// The file, or the folder of its project, cannot be read.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let mut bytes = Vec::new();
        let limit = MAX_BYTES as u64 + 1;
        File::open(path)?.take(limit).read_to_end(&mut bytes)?;
        let project = match project_of(&path.canonicalize()?) {
            Some(folder) => Some(FolderAssets::open(&folder)?),
            None => None,
        };
        let manifest = match &project {
            Some(project) => scan(project),
            None => PromptAssetManifest::default(),
        };
        Ok(Self {
            text: text_of(bytes),
            project,
            manifest,
        })
    }

    /// Validates the flow.
    pub(super) fn validate(&self, adapters: &dyn KnownAdapters, strict: bool) -> Validation {
        let options = Options {
            strict,
            unknown_fields: true,
            ..self.options()
        };
        match &self.text {
            Ok(text) => validate_text(text, &self.manifest, adapters, &options),
            Err(refused) => refused.clone(),
        }
    }

    /// Compiles the flow. With `deep`, adapters check the configuration of agents.
    ///
    /// # Errors
    /// The problems of the flow.
    pub(super) fn compile(
        &self,
        adapters: &dyn KnownAdapters,
        deep: bool,
    ) -> Result<Compiled, Validation> {
        let text = self.text.as_ref().map_err(Clone::clone)?;
        let options = Options {
            deep,
            ..self.options()
        };
        compile_text(text, &self.manifest, adapters, &options)
    }

    fn options(&self) -> Options<'_> {
        Options {
            project: self.project.as_ref().map(|project| project as _),
            ..Options::default()
        }
    }
}

fn text_of(bytes: Vec<u8>) -> Result<String, Validation> {
    // A text that is cut at the limit may end within a letter; its size is the problem to report.
    if bytes.len() > MAX_BYTES {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        let message = format!("the file is not UTF-8 text: byte {place} begins no letter");
        Validation {
            valid: false,
            errors: vec![Finding::new(FindingCode::SchemaInvalid, message)],
            warnings: Vec::new(),
        }
    })
}

/// Returns the nearest folder above the file that has an asset folder. The search ends at the root
/// of a Git repository and at a folder of flows.
fn project_of(file: &Path) -> Option<PathBuf> {
    for folder in file.ancestors().skip(1) {
        if folder.join(ASSET_FOLDER).is_dir() {
            return Some(folder.to_owned());
        }
        let is_flows_folder = folder.file_name().is_some_and(|name| name == FLOWS_FOLDER);
        if is_flows_folder || folder.join(".git").exists() {
            return None;
        }
    }
    None
}
