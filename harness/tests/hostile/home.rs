//! File tools over a home folder on the disk, with a canary next to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deerflow_harness::artifacts::{Artifact, artifact_path};
use deerflow_harness::ids::ThreadId;
use deerflow_harness::sandbox::safe_fs::Resolver;
use deerflow_harness::sandbox::virtual_paths::RelativePath;
use deerflow_harness::sandbox::{
    FileFailure, FileHome, FileLimits, MountedSkill, Root, SkillMountSource, SkillMounts,
    ThreadFiles,
};
use deerflow_harness::testkit::skill_archives::{Entry, archive, skill_text};
use deerflow_harness::testkit::tool_context;
use deerflow_harness::tools::builtins::{
    Glob, Grep, ListUploadedFiles, Ls, PresentFiles, ReadFile, StrReplace, ViewImage, WriteFile,
};
use deerflow_harness::tools::{ToolContext, ToolRegistry, erase};
use deerflow_harness::uploads::{UploadBatch, UploadLimits};
use serde_json::{Value, json};

/// Texts that no result may contain: the content of an outside file, the name of one that exists
/// only there, and the length of an image.
const CANARIES: [&str; 3] = ["canary-51c7", "only-outside", "1313377"];
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Home folder with one thread of `ann`, whose folders have the same names as those outside and
/// other contents.
pub(crate) struct Home {
    base: tempfile::TempDir,
    pub(crate) files: ThreadFiles,
    tools: ToolRegistry,
    ctx: ToolContext,
}

/// The only existing skill.
#[derive(Debug)]
struct OneSkill(PathBuf);

impl SkillMountSource for OneSkill {
    fn of(&self, _user_id: &str) -> Result<SkillMounts, FileFailure> {
        Ok(SkillMounts::new(vec![MountedSkill {
            path: RelativePath::parse("public/web").expect("a path"),
            host: self.0.clone(),
        }]))
    }
}

impl Home {
    pub(crate) fn new(resolver: Resolver) -> Self {
        let base = tempfile::tempdir().expect("a folder");
        let outside = base.path().join("outside");
        for folder in [outside.clone(), outside.join("real")] {
            write_sample_files(&folder, CANARIES[0], 1_313_377);
            fs::write(folder.join("only-outside.txt"), CANARIES[0]).expect("a file");
        }
        let skill = base.path().join("skills/web");
        let home =
            FileHome::with_resolver(base.path().join("home"), FileLimits::default(), resolver);
        let home = home.with_skill_mounts(Arc::new(OneSkill(skill.clone())));
        let ctx = tool_context();
        let files = home.thread(&ctx.run.actor.user_id, &ctx.run.thread_id);
        for root in [Root::Workspace, Root::Uploads, Root::Outputs] {
            files.blocking().dirs().create(root).expect("a root");
            let folder = files.blocking().dirs().host_path(root);
            write_sample_files(&folder, "inside", 64);
            write_sample_files(&folder.join("real"), "inside", 64);
        }
        write_sample_files(&skill.join("real"), "inside", 64);
        let mut tools = ToolRegistry::new();
        tools.add(erase(Ls {
            home: home.clone(),
            max_chars: 20_000,
        }));
        tools.add(erase(ReadFile {
            home: home.clone(),
            max_chars: 50_000,
        }));
        tools.add(erase(WriteFile { home: home.clone() }));
        tools.add(erase(StrReplace { home: home.clone() }));
        tools.add(erase(Glob {
            home: home.clone(),
            max_results: None,
        }));
        tools.add(erase(Grep {
            home: home.clone(),
            max_results: None,
        }));
        tools.add(erase(ViewImage { home: home.clone() }));
        tools.add(erase(ListUploadedFiles { home: home.clone() }));
        tools.add(erase(PresentFiles { home }));
        Self {
            base,
            files,
            tools,
            ctx,
        }
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.base.path().join("outside")
    }

    /// Returns the host path of a virtual folder.
    pub(crate) fn host(&self, folder: &str) -> PathBuf {
        let dirs = self.files.blocking().dirs();
        match folder.strip_prefix("/mnt/user-data") {
            Some(way) => dirs
                .host_path(Root::Workspace)
                .parent()
                .expect("a parent")
                .join(way.trim_start_matches('/')),
            None => self
                .base
                .path()
                .join("skills")
                .join(folder.trim_start_matches("/mnt/skills/public/")),
        }
    }

    /// Calls a tool and returns its whole result, for model and user.
    pub(crate) async fn call(&self, tool: &str, args: Value) -> Result<String, String> {
        let Value::Object(args) = args else {
            panic!("arguments are an object")
        };
        let answer = self
            .tools
            .get(tool)
            .expect("a tool")
            .call(args, &self.ctx)
            .await;
        answer
            .map(|output| format!("{} {output:?}", output.content.text()))
            .map_err(|error| error.to_string())
    }

    /// Returns the file at a path as it is served over HTTP.
    pub(crate) async fn artifact(&self, path: &str) -> Result<String, String> {
        let path = artifact_path(path).map_err(|error| error.to_string())?;
        let artifact = Artifact::open(&self.files, &path)
            .await
            .map_err(|error| error.to_string())?;
        let bytes = artifact
            .read(&path, 4 << 20)
            .await
            .map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Uploads a file with this name.
    pub(crate) async fn upload(&self, name: &str) -> Result<String, String> {
        let limits = UploadLimits {
            max_files: 9,
            max_file_size: 1 << 20,
            max_total_size: 1 << 20,
        };
        let mut batch = UploadBatch::new(self.files.clone(), limits);
        let text = |error: &dyn std::fmt::Display| error.to_string();
        if let Some(coming) = batch.begin(name).await.map_err(|error| text(&error))? {
            let whole = batch
                .write(coming, "written".into())
                .await
                .map_err(|error| text(&error))?;
            batch.add(whole);
        }
        let thread = ThreadId::parse("t").expect("an id");
        let uploaded = batch
            .appear("ann", &thread, None)
            .await
            .map_err(|error| text(&error))?;
        if uploaded.files.is_empty() {
            Err("skipped".to_owned())
        } else {
            Ok(format!("{uploaded:?}"))
        }
    }

    /// Asserts that nothing outside of the home was changed.
    pub(crate) fn assert_outside_is_untouched(&self, by: &str) {
        assert_eq!(
            names_in(self.base.path()),
            ["home", "outside", "skills"],
            "{by}"
        );
        let names = ["bag.skill", "only-outside.txt", "pic.png", "secret.txt"];
        assert_eq!(names_in(&self.outside().join("real")), names, "{by}");
        assert_eq!(
            names_in(&self.outside()),
            [
                "bag.skill",
                "only-outside.txt",
                "pic.png",
                "real",
                "secret.txt"
            ],
            "{by}"
        );
        for folder in [self.outside(), self.outside().join("real")] {
            assert_eq!(
                fs::read_to_string(folder.join("secret.txt")).expect("a file"),
                CANARIES[0],
                "{by}"
            );
            assert_eq!(
                fs::metadata(folder.join("pic.png")).expect("a file").len(),
                1_313_377,
                "{by}"
            );
        }
    }
}

/// Asserts that a result reveals nothing from outside; text of `asked` itself is permitted.
pub(crate) fn assert_discloses_nothing(answer: &str, asked: &str) {
    for canary in CANARIES.iter().filter(|canary| !asked.contains(**canary)) {
        assert!(!answer.contains(canary), "{asked:?} revealed {canary}");
    }
}

/// Writes a text, an image and an archive into a folder.
pub(crate) fn write_sample_files(folder: &Path, text: &str, picture_bytes: usize) {
    fs::create_dir_all(folder).expect("a folder");
    for name in ["secret.txt", "pic.png", "bag.skill"] {
        fs::write(folder.join(name), content(name, text, picture_bytes)).expect("a file");
    }
}

/// Returns the content of a file with this name.
pub(crate) fn content(name: &str, text: &str, picture_bytes: usize) -> Vec<u8> {
    match name {
        "pic.png" => [PICTURE, &vec![0; picture_bytes - PICTURE.len()]].concat(),
        "bag.skill" => archive(&[
            Entry::file("SKILL.md", skill_text("bag")),
            Entry::file("note.md", text),
        ]),
        _ => text.as_bytes().to_vec(),
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Returns arguments that apply a tool to a folder and a file.
pub(crate) fn arguments(tool: &str, folder: &str, file: &str) -> Value {
    match tool {
        "write_file" => json!({ "path": file, "content": "written" }),
        "append" => json!({ "path": file, "content": "written", "append": true }),
        "str_replace" => json!({ "path": file, "old_str": "i", "new_str": "I" }),
        "ls" => json!({ "path": folder }),
        "glob" => json!({ "path": folder, "pattern": "**/*", "include_dirs": true }),
        "grep" => json!({ "path": folder, "pattern": "[a-z]" }),
        "view_image" => json!({ "image_path": file }),
        "present_files" => json!({ "filepaths": [file] }),
        "list_uploaded_files" => json!({ "include_outline": true }),
        _ => json!({ "path": file }),
    }
}
