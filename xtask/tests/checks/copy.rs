//! Copy of this workspace's manifests and sources in a temporary folder, for planted violations.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

pub(crate) struct Copy {
    folder: TempDir,
}

impl Copy {
    pub(crate) fn of_this_workspace() -> Result<Self> {
        let folder = TempDir::new()?;
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        copy_sources(root.context("xtask lies in the workspace")?, folder.path())?;
        Ok(Self { folder })
    }

    /// Runs a check on the copy. Returns whether it passed, and its output.
    pub(crate) fn check(&self, check: &str) -> Result<(bool, String)> {
        let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args([check, "--root"])
            .arg(self.folder.path())
            .output()?;
        let message = String::from_utf8(output.stderr)?;
        ensure!(
            matches!(output.status.code(), Some(0 | 1)),
            "{}: {message}",
            output.status
        );
        Ok((output.status.success(), message))
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> Result<()> {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().context("a file in a folder")?)?;
        Ok(fs::write(path, text)?)
    }

    pub(crate) fn append(&self, path: &str, text: &str) -> Result<()> {
        self.write(path, &format!("{}{text}", self.read(path)?))
    }

    pub(crate) fn insert_after(&self, path: &str, mark: &str, text: &str) -> Result<()> {
        let old = self.read(path)?;
        ensure!(old.contains(mark), "{path} has no {mark:?}");
        self.write(path, &old.replacen(mark, &format!("{mark}{text}"), 1))
    }

    fn read(&self, path: &str) -> Result<String> {
        Ok(fs::read_to_string(self.folder.path().join(path))?)
    }
}

fn copy_sources(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            let is_generated = name.starts_with('.') || name == "target" || name == "node_modules";
            if !is_generated {
                copy_sources(&path, &to.join(entry.file_name()))?;
            }
        } else if is_source(&name) {
            fs::copy(&path, to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn is_source(name: &str) -> bool {
    const LISTS: [&str; 4] = ["modules.txt", "circles.txt", "oversize.txt", "types.txt"];
    name.ends_with(".rs") || name == "Cargo.toml" || LISTS.contains(&name)
}
