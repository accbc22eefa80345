//! Workspace under check: its manifests as cargo reads them, and its source files.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use cargo_metadata::camino::{Utf8Path, Utf8PathBuf};
use cargo_metadata::{CargoOpt, Metadata, MetadataCommand};

/// Workspace, loaded without network access and without changes to the lock file.
pub(crate) struct Workspace {
    metadata: Metadata,
}

/// Source file and its text; `path` is relative to the workspace root.
pub(crate) struct SourceFile {
    pub(crate) path: Utf8PathBuf,
    pub(crate) text: String,
}

impl Workspace {
    /// Opens the workspace in `root`, or the one that contains the current folder.
    pub(crate) fn open(root: Option<&Path>) -> Result<Self> {
        let mut command = MetadataCommand::new();
        command
            .no_deps()
            .features(CargoOpt::AllFeatures)
            .other_options(vec!["--offline".to_owned()]);
        if let Some(root) = root {
            command.manifest_path(root.join("Cargo.toml"));
        }
        let metadata = command.exec().context("cargo metadata failed")?;
        Ok(Self { metadata })
    }

    pub(crate) fn root(&self) -> &Utf8Path {
        &self.metadata.workspace_root
    }

    /// Returns cargo's target directory; respects `CARGO_TARGET_DIR`.
    pub(crate) fn target_directory(&self) -> &Utf8Path {
        &self.metadata.target_directory
    }

    pub(crate) fn packages(&self) -> Vec<&cargo_metadata::Package> {
        self.metadata.workspace_packages()
    }

    /// Returns the names of the crates that are published, in the order of the manifest.
    pub(crate) fn published(&self) -> Vec<&str> {
        self.packages()
            .into_iter()
            .filter(|package| package.publish.is_none())
            .map(|package| package.name.as_str())
            .collect()
    }

    /// Returns `path` relative to the root, for messages.
    pub(crate) fn relative<'p>(&self, path: &'p Utf8Path) -> &'p Utf8Path {
        path.strip_prefix(self.root()).unwrap_or(path)
    }

    /// Returns every `.rs` file below `folder` (relative to the root), in path order; none if the
    /// folder does not exist.
    pub(crate) fn rust_files(&self, folder: &str) -> Result<Vec<SourceFile>> {
        let mut paths = Vec::new();
        collect(&self.root().join(folder), &mut paths)?;
        paths.sort();
        paths
            .into_iter()
            .map(|path| {
                let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
                let path = self.relative(&path).to_owned();
                Ok(SourceFile { path, text })
            })
            .collect()
    }
}

/// Runs `command` with the terminal of this process, and returns its success or failure.
pub(crate) fn run(command: &mut Command) -> Result<ExitCode> {
    let status = command
        .status()
        .with_context(|| format!("starting {:?}", command.get_program()))?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        eprintln!("{command:?} failed: {status}");
        ExitCode::FAILURE
    })
}

fn collect(folder: &Utf8Path, paths: &mut Vec<Utf8PathBuf>) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in folder
        .read_dir_utf8()
        .with_context(|| format!("listing {folder}"))?
    {
        let entry = entry.with_context(|| format!("listing {folder}"))?;
        let kind = entry.file_type()?;
        if kind.is_dir() && !is_generated(entry.file_name()) {
            collect(entry.path(), paths)?;
        } else if kind.is_file() && entry.path().extension() == Some("rs") {
            paths.push(entry.path().to_owned());
        }
    }
    Ok(())
}

fn is_generated(folder: &str) -> bool {
    folder.starts_with('.') || matches!(folder, "target" | "node_modules")
}
