//! What `deerflow flow import` reads: a file, a project folder, or a zip archive.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use anyhow::Context as _;
use deerflow_domain::flows::{MAX_TEXT_BYTES, slug_of};
use deerflow_flow::assets::ASSET_FOLDER;
use deerflow_gateway::flows::{ProjectFile, files_of_archive};
use harness::skills::archive::text_files;

use crate::flows::read;

/// Maximum size of an archive, in bytes.
const MAX_ARCHIVE_BYTES: u64 = 20 << 20;

/// Files to import.
pub(super) struct Source {
    /// Name of the file or folder in the folder of system flows.
    pub(super) target: String,
    /// `true` if the target is a folder with the files; else it is the only file.
    pub(super) is_folder: bool,
    pub(super) files: Vec<ProjectFile>,
}

impl Source {
    /// Reads a source. The folder `.agents-flow` stands for the project that contains it.
    ///
    /// # Errors
    /// The source cannot be read, its name makes no id, or the archive is not valid.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let path = &path.canonicalize()?;
        let path = match path.parent() {
            Some(project) if path.ends_with(ASSET_FOLDER) => project,
            _ => path,
        };
        let name = path.file_name().and_then(|name| name.to_str());
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let is_archive = path.extension().is_some_and(|ending| ending == "zip");
        if !path.is_dir() && !is_archive {
            return Self::document(path, name.context("the file name is not UTF-8")?);
        }
        let name = if is_archive { stem } else { name };
        let target = name.and_then(slug_of);
        Ok(Self {
            target: target.context("the name has no letter or digit of ASCII; rename it")?,
            is_folder: true,
            files: if is_archive {
                archive(path)?
            } else {
                read(path)?
            },
        })
    }

    fn document(path: &Path, name: &str) -> anyhow::Result<Self> {
        let mut text = String::new();
        let limit = MAX_TEXT_BYTES as u64 + 1;
        File::open(path)?.take(limit).read_to_string(&mut text)?;
        Ok(Self {
            target: name.to_owned(),
            is_folder: false,
            files: vec![ProjectFile {
                path: name.to_owned(),
                text,
            }],
        })
    }
}

fn archive(path: &Path) -> anyhow::Result<Vec<ProjectFile>> {
    let bytes = fs::metadata(path)?.len();
    anyhow::ensure!(
        bytes <= MAX_ARCHIVE_BYTES,
        "the archive has more than {MAX_ARCHIVE_BYTES} bytes"
    );
    let is_text = |path: &str| {
        let ending = path.rsplit_once('.').map(|(_, ending)| ending);
        matches!(ending, Some("yaml" | "yml" | "json" | "md" | "txt"))
    };
    let files = text_files(File::open(path)?, MAX_ARCHIVE_BYTES, is_text)?;
    let files = files.into_iter().map(|file| ProjectFile {
        path: file.path,
        text: file.text,
    });
    Ok(files_of_archive(files.collect()))
}
