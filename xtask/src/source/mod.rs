//! Product code of the crates: their files as modules, and the files that each refers to.

mod facts;
mod graph;
mod imports;

use std::collections::BTreeSet;

use anyhow::{Result, anyhow};
use cargo_metadata::camino::{Utf8Path, Utf8PathBuf};

pub(crate) use facts::Facts;
pub(crate) use graph::{Edge, circles, edges};

use crate::workspace::Workspace;

/// Crate without its test code.
#[derive(Debug)]
pub(crate) struct Crate {
    pub(crate) name: String,
    /// Folder of the sources, relative to the workspace.
    pub(crate) folder: Utf8PathBuf,
    pub(crate) modules: Vec<Module>,
}

/// Product file.
#[derive(Debug)]
pub(crate) struct Module {
    /// Path relative to the sources of the crate.
    pub(crate) file: Utf8PathBuf,
    /// Names of the module and of those around it, from the root down; empty for the root.
    pub(crate) path: Vec<String>,
    pub(crate) facts: Facts,
}

impl Crate {
    /// Reads the product code of every crate.
    pub(crate) fn load_all(workspace: &Workspace) -> Result<Vec<Self>> {
        workspace
            .packages()
            .into_iter()
            .map(|package| {
                let manifest = workspace.relative(&package.manifest_path);
                let folder = manifest.with_file_name("src");
                let texts = workspace.rust_files(folder.as_str())?;
                let texts = texts.into_iter().map(|file| (file.path, file.text));
                Self::read(&package.name, folder, texts)
            })
            .collect()
    }

    /// Reads a crate from `texts`, pairs of the path of a file and its text.
    pub(crate) fn read(
        name: &str,
        folder: Utf8PathBuf,
        texts: impl IntoIterator<Item = (Utf8PathBuf, String)>,
    ) -> Result<Self> {
        let mut modules = Vec::new();
        for (path, text) in texts {
            let file = path.strip_prefix(&folder).unwrap_or(&path).to_owned();
            if !is_test_file(&file) {
                let facts = Facts::read(&text).map_err(|error| anyhow!("{path}: {error}"))?;
                let path = module_path(&file);
                modules.push(Module { file, path, facts });
            }
        }
        let mut crate_ = Self {
            name: name.to_owned(),
            folder,
            modules,
        };
        crate_.drop_test_modules();
        Ok(crate_)
    }

    /// Returns the path of a file of this crate, relative to the workspace.
    pub(crate) fn path_of(&self, module: &Module) -> Utf8PathBuf {
        self.folder.join(&module.file)
    }

    /// Removes files whose module is declared for tests only, and the binary's root next to a
    /// library.
    fn drop_test_modules(&mut self) {
        let mut dropped = BTreeSet::new();
        for module in &self.modules {
            for name in &module.facts.test_modules {
                dropped.insert([module.path.as_slice(), std::slice::from_ref(name)].concat());
            }
        }
        let has_library = self.modules.iter().any(|module| module.file == "lib.rs");
        self.modules.retain(|module| {
            let is_test = (1..=module.path.len()).any(|end| dropped.contains(&module.path[..end]));
            let is_second_root = has_library && module.file == "main.rs";
            !is_test && !is_second_root
        });
    }
}

/// Reports whether a file contains test code only, by its name: `x_tests.rs`, `test_server.rs`,
/// `wire_kit.rs`, and all in `testkit`.
pub(crate) fn is_test_file(path: &Utf8Path) -> bool {
    let is_folder_of_tests = path
        .components()
        .any(|part| matches!(part.as_str(), "testkit" | "tests"));
    let stem = path.file_stem().unwrap_or_default();
    is_folder_of_tests
        || matches!(stem, "tests" | "testkit")
        || stem.ends_with("_tests")
        || stem.starts_with("test_")
        || stem.ends_with("_kit")
}

fn module_path(file: &Utf8Path) -> Vec<String> {
    let mut path: Vec<String> = file
        .parent()
        .into_iter()
        .flat_map(Utf8Path::components)
        .map(|part| part.to_string())
        .collect();
    match file.file_stem().unwrap_or_default() {
        "mod" => {}
        "lib" | "main" if path.is_empty() => {}
        stem => path.push(stem.to_owned()),
    }
    path
}
