//! Reads the folder `.agents-flow` of a project into a manifest.

use indexmap::map::Entry;

use super::files::AssetFiles;
use super::frontmatter::{self, FrontmatterError, unix_lines};
use super::manifest::{ManifestError, ManifestErrorCode, PromptAssetManifest, TextAsset};

/// Folder of the assets in a project.
pub const ASSET_FOLDER: &str = ".agents-flow";
/// File of the global system prompt.
pub const GLOBAL_PROMPT_FILE: &str = ".agents-flow/global-system-prompt.md";
/// Maximum bytes of all asset files of a project.
pub const MAX_TOTAL_BYTES: usize = 20 * 1024 * 1024;

/// Reads the prompt assets of a project. Files are read in the order of their paths, so that of
/// two with one id the first counts. A missing folder is no problem.
///
/// ```
/// use deerflow_flow::assets::{MemoryAssets, scan};
///
/// let manifest = scan(&MemoryAssets::new([(
///     ".agents-flow/agents/p.agent.md",
///     "---\nname: P\ndescription: plans\nagentId: planner\noutput.kind: plan\n---\nMake a plan.",
/// )]));
/// assert_eq!(manifest.agents["planner"].body, "Make a plan.");
/// assert!(manifest.errors.is_empty());
/// ```
pub fn scan(files: &dyn AssetFiles) -> PromptAssetManifest {
    let mut scan = Scan {
        files,
        manifest: PromptAssetManifest::default(),
        remaining: MAX_TOTAL_BYTES,
    };
    scan.global_prompt();
    scan.agents();
    scan.instructions();
    scan.skills();
    scan.missing_includes();
    scan.manifest
}

struct Scan<'f> {
    files: &'f dyn AssetFiles,
    manifest: PromptAssetManifest,
    /// Bytes that may still be read.
    remaining: usize,
}

impl Scan<'_> {
    fn global_prompt(&mut self) {
        let exists = self
            .entries(ASSET_FOLDER, false)
            .iter()
            .any(|name| GLOBAL_PROMPT_FILE.ends_with(&format!("/{name}")));
        if exists && let Some(text) = self.read(GLOBAL_PROMPT_FILE) {
            let text = unix_lines(&text).trim().to_owned();
            self.manifest.global_system_prompt = (!text.is_empty()).then_some(text);
        }
    }

    fn agents(&mut self) {
        for path in self.named_files("agents", ".agent.md") {
            let Some(text) = self.read(&path) else {
                continue;
            };
            match frontmatter::agent(&text, &path) {
                Err(error) => self.invalid(&path, error),
                Ok((id, asset)) => match self.manifest.agents.entry(id) {
                    Entry::Vacant(entry) => {
                        entry.insert(asset);
                    }
                    Entry::Occupied(entry) => {
                        let message = format!(
                            "agent `{}` is defined in {} already; give this one another agentId",
                            entry.key(),
                            entry.get().source_path.as_deref().unwrap_or("another file")
                        );
                        let id = entry.key().clone();
                        self.add(
                            ManifestErrorCode::DuplicateAgentId,
                            message,
                            &path,
                            Some(id),
                        );
                    }
                },
            }
        }
    }

    fn instructions(&mut self) {
        for path in self.named_files("instructions", ".instructions.md") {
            let Some(asset) = self.text_asset(&path) else {
                continue;
            };
            match self.manifest.instructions.entry(asset.name.clone()) {
                Entry::Vacant(entry) => {
                    entry.insert(asset);
                }
                Entry::Occupied(entry) => {
                    let message = format!(
                        "instruction `{}` is defined in {} already; give this one another name",
                        entry.key(),
                        entry.get().source_path.as_deref().unwrap_or("another file")
                    );
                    self.add(
                        ManifestErrorCode::DuplicateInstructionName,
                        message,
                        &path,
                        None,
                    );
                }
            }
        }
    }

    fn skills(&mut self) {
        let folder = format!("{ASSET_FOLDER}/skills");
        for name in self.entries(&folder, true) {
            let folder = format!("{folder}/{name}");
            if self
                .entries(&folder, false)
                .iter()
                .any(|file| file == "SKILL.md")
                && let Some(asset) = self.text_asset(&format!("{folder}/SKILL.md"))
            {
                self.manifest.skills.insert(name, asset);
            }
        }
    }

    fn missing_includes(&mut self) {
        let manifest = &self.manifest;
        let mut errors = Vec::new();
        for (id, agent) in &manifest.agents {
            let includes = &agent.includes;
            let missing = |(kind, name): &(&str, &String)| match *kind {
                "instruction" => !manifest.instructions.contains_key(*name),
                _ => !manifest.skills.contains_key(*name),
            };
            let instructions = includes
                .instructions
                .iter()
                .map(|name| ("instruction", name));
            let skills = includes.skills.iter().map(|name| ("skill", name));
            errors.extend(
                instructions
                    .chain(skills)
                    .filter(missing)
                    .map(|(kind, name)| ManifestError {
                        code: ManifestErrorCode::MissingInclude,
                        message: format!(
                            "agent `{id}` includes {kind} `{name}`, which does not exist"
                        ),
                        source_path: agent.source_path.clone(),
                        agent_id: Some(id.clone()),
                    }),
            );
        }
        self.manifest.errors.extend(errors);
    }

    fn text_asset(&mut self, path: &str) -> Option<TextAsset> {
        let text = self.read(path)?;
        match frontmatter::text_asset(&text, path) {
            Ok(asset) => Some(asset),
            Err(error) => {
                self.invalid(path, error);
                None
            }
        }
    }

    /// Returns the paths of the files of a folder with this suffix, and reports other Markdown
    /// files.
    fn named_files(&mut self, folder: &str, suffix: &str) -> Vec<String> {
        let folder = format!("{ASSET_FOLDER}/{folder}");
        let (named, others): (Vec<String>, Vec<String>) = self
            .entries(&folder, false)
            .into_iter()
            .partition(|name| name.ends_with(suffix) && name.len() > suffix.len());
        for name in others.iter().filter(|name| name.ends_with(".md")) {
            let message = format!("files of this folder are named *{suffix}; rename or move it");
            let path = format!("{folder}/{name}");
            self.add(ManifestErrorCode::UnexpectedFile, message, &path, None);
        }
        named
            .into_iter()
            .map(|name| format!("{folder}/{name}"))
            .collect()
    }

    /// Returns the sorted names of the files or folders in a folder.
    fn entries(&mut self, folder: &str, folders: bool) -> Vec<String> {
        match self.files.list(folder) {
            Ok(entries) => {
                let mut names: Vec<String> = entries
                    .into_iter()
                    .flatten()
                    .filter(|entry| entry.is_folder == folders)
                    .map(|entry| entry.name)
                    .collect();
                names.sort();
                names
            }
            Err(error) => {
                let message = format!("cannot read the folder: {error}");
                self.add(ManifestErrorCode::StatError, message, folder, None);
                Vec::new()
            }
        }
    }

    fn read(&mut self, path: &str) -> Option<String> {
        let message = match self.files.read(path) {
            Ok(text) if text.len() <= self.remaining => {
                self.remaining -= text.len();
                return Some(text);
            }
            Ok(_) => format!("the assets of a project have at most {MAX_TOTAL_BYTES} bytes"),
            Err(error) => format!("cannot read the file: {error}"),
        };
        self.add(ManifestErrorCode::FileReadError, message, path, None);
        None
    }

    fn invalid(&mut self, path: &str, error: FrontmatterError) {
        let message = format!("the frontmatter is not valid: {}", error.message);
        self.add(
            ManifestErrorCode::InvalidFrontmatter,
            message,
            path,
            error.agent_id,
        );
    }

    fn add(&mut self, code: ManifestErrorCode, message: String, path: &str, agent: Option<String>) {
        self.manifest.errors.push(ManifestError {
            code,
            message,
            source_path: Some(path.to_owned()),
            agent_id: agent,
        });
    }
}
