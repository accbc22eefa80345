//! Skills on a disk: lookup, enabled state, and changes by users.

#[path = "library_change_tests.rs"]
mod change;

use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::sandbox::{FileHome, FileLimits, LineRange, TextRead, VirtualPath};
use crate::skills::Revision;
use crate::testkit::skill_archives::{compressed, hostile, skill_text};
use deerflow_core::clock::SystemClock;

struct Fixture {
    base: tempfile::TempDir,
    skills: Skills,
}

impl Fixture {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        let folders = SkillFolders {
            shared: base.path().join("shared"),
            home: base.path().join("home"),
        };
        let extensions = Arc::new(ExtensionsFile::at(
            base.path().join("extensions_config.json"),
        ));
        let skills = Skills::new(
            folders,
            extensions,
            OpenKeys::default(),
            Arc::new(SystemClock),
        );
        Self { base, skills }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.base.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn archive(&self, bytes: &[u8]) -> File {
        self.write("uploaded.skill", "");
        fs::write(self.base.path().join("uploaded.skill"), bytes).unwrap();
        File::open(self.base.path().join("uploaded.skill")).unwrap()
    }

    async fn install(&self, user: &str, name: &str) -> Result<Skill, SkillError> {
        let bytes = compressed(&[
            ("SKILL.md", skill_text(name).as_bytes()),
            ("scripts/run.py", b"print()"),
        ]);
        self.skills.install(user, self.archive(&bytes)).await
    }

    /// `category/name`, with a minus for a disabled skill.
    async fn names(&self, user: &str) -> Vec<String> {
        let skills = self.skills.list(user).await.unwrap();
        let shown = |skill: &Skill| {
            format!(
                "{}{}/{}",
                if skill.enabled { "" } else { "-" },
                skill.category.dir_name(),
                skill.name()
            )
        };
        skills.iter().map(shown).collect()
    }
}

#[tokio::test]
async fn skills_are_found_at_any_depth_and_others_skipped() {
    let fixture = Fixture::new();
    assert!(
        fixture.names("ann").await.is_empty(),
        "no folder, no skills"
    );
    fixture.write("shared/public/web/SKILL.md", &skill_text("web"));
    fixture.write("shared/public/web/inner/SKILL.md", &skill_text("hidden"));
    fixture.write(
        "shared/public/office/sheets/SKILL.md",
        &skill_text("sheets"),
    );
    fixture.write("shared/public/.git/SKILL.md", &skill_text("hidden"));
    fixture.write("shared/public/broken/SKILL.md", "---\nname: a: b\n---\n");
    fixture.write("shared/public/binary/SKILL.md", "---\nname: a\u{0}\n---\n");
    fixture.write("shared/public/notes/readme.md", "no skill");
    fixture.write("outside/SKILL.md", &skill_text("outside"));
    symlink(
        fixture.base.path().join("outside"),
        fixture.base.path().join("shared/public/link"),
    )
    .unwrap();
    assert_eq!(fixture.names("ann").await, ["public/sheets", "public/web"]);
    let sheets = fixture.skills.get("ann", "sheets").await.unwrap();
    assert_eq!(sheets.file(), "/mnt/skills/public/office/sheets/SKILL.md");
    fixture.write("shared/public/broken/SKILL.md", &skill_text("fixed"));
    assert_eq!(
        fixture.names("ann").await,
        ["public/fixed", "public/sheets", "public/web"],
        "changes are detected"
    );
}

#[tokio::test]
async fn malformed_folder_hides_no_other_skill() {
    let fixture = Fixture::new();
    fixture.write("shared/public/web/SKILL.md", &skill_text("web"));
    fixture.write("shared/public/folder/SKILL.md/readme.md", "a folder");
    fixture.write(
        "shared/public/office/sheets/SKILL.md",
        &skill_text("sheets"),
    );
    fixture.write("shared/public/pipe/readme.md", "");
    let pipe = fixture.base.path().join("shared/public/pipe/SKILL.md");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    fixture.write("shared/public/link/readme.md", "");
    symlink(
        "/etc/hostname",
        fixture.base.path().join("shared/public/link/SKILL.md"),
    )
    .unwrap();
    assert_eq!(fixture.names("ann").await, ["public/sheets", "public/web"]);
}

#[tokio::test]
async fn custom_skill_overrides_legacy_and_legacy_overrides_public() {
    let fixture = Fixture::new();
    fixture.write("shared/public/web/SKILL.md", &skill_text("web"));
    fixture.write("shared/custom/web/SKILL.md", &skill_text("web"));
    assert_eq!(fixture.names("ann").await, ["legacy/web"]);
    assert!(
        !fixture
            .install("ann", "web")
            .await
            .unwrap()
            .folder
            .host
            .starts_with(fixture.base.path().join("shared"))
    );
    assert_eq!(
        (fixture.names("ann").await, fixture.names("bob").await),
        (vec!["custom/web".to_owned()], vec!["legacy/web".to_owned()])
    );
}

#[tokio::test]
async fn public_skills_switch_for_all_others_per_user() {
    let fixture = Fixture::new();
    fixture.write("shared/public/web/SKILL.md", &skill_text("web"));
    fixture.install("ann", "own").await.unwrap();
    fixture.install("bob", "own").await.unwrap();
    assert!(
        !fixture
            .skills
            .switch("ann", "web", false)
            .await
            .unwrap()
            .enabled
    );
    assert!(
        !fixture
            .skills
            .switch("ann", "own", false)
            .await
            .unwrap()
            .enabled
    );
    assert_eq!(fixture.names("ann").await, ["-custom/own", "-public/web"]);
    assert_eq!(fixture.names("bob").await, ["custom/own", "-public/web"]);
    assert!(matches!(
        fixture.skills.switch("ann", "none", false).await,
        Err(SkillError::NotFound(_))
    ));
    let saved = fs::read_to_string(fixture.base.path().join("extensions_config.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&saved).unwrap(),
        serde_json::json!({"skills": {"web": {"enabled": false}}})
    );
    let only = SkillChoice::Only(vec!["web".to_owned()]);
    assert!(
        fixture
            .skills
            .usable("bob", &only)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        fixture
            .skills
            .usable("bob", &SkillChoice::All)
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn conversations_read_enabled_skills_only() {
    let fixture = Fixture::new();
    fixture.write("shared/public/web/SKILL.md", &skill_text("web"));
    fixture.write(
        "shared/public/office/sheets/SKILL.md",
        &skill_text("sheets"),
    );
    fixture.install("ann", "own").await.unwrap();
    let home = FileHome::new(fixture.base.path().join("home"), FileLimits::default())
        .with_skill_mounts(Arc::new(fixture.skills.clone()));
    let files = |user: &str| home.thread(user, &deerflow_core::ids::ThreadId::parse("t1").unwrap());
    let path = |text: &str| VirtualPath::parse_readable(text).unwrap();
    let listed = files("ann")
        .list(&path("/mnt/skills"), 2)
        .await
        .unwrap()
        .lines;
    assert_eq!(
        listed,
        [
            "/mnt/skills/custom/",
            "/mnt/skills/custom/own/",
            "/mnt/skills/public/",
            "/mnt/skills/public/office/",
            "/mnt/skills/public/web/"
        ]
    );
    let listed = files("ann")
        .list(&path("/mnt/skills/custom"), 2)
        .await
        .unwrap()
        .lines;
    assert_eq!(
        listed,
        [
            "/mnt/skills/custom/own/",
            "/mnt/skills/custom/own/SKILL.md",
            "/mnt/skills/custom/own/scripts/"
        ]
    );
    let read =
        async |user: &str, text: &str| files(user).read_text(&path(text), LineRange::ALL).await;
    assert!(matches!(
        read("ann", "/mnt/skills/custom/own/SKILL.md").await,
        Ok(TextRead::Text { .. })
    ));
    assert!(
        read("bob", "/mnt/skills/custom/own/SKILL.md")
            .await
            .unwrap_err()
            .is_not_found(),
        "it belongs to ann"
    );
    assert!(read("ann", "/mnt/skills/public").await.is_err());
    let pattern = crate::sandbox::NamePattern::parse("**/*.md").unwrap();
    let found = files("ann")
        .glob(&path("/mnt/skills"), pattern, false, 10)
        .await
        .unwrap()
        .rows;
    let all = ["custom/own", "public/office/sheets", "public/web"]
        .map(|folder| format!("/mnt/skills/{folder}/SKILL.md"));
    assert_eq!(found, all);
    let query = crate::sandbox::LineQuery::parse("Does web", true, true, None).unwrap();
    let lines = files("ann")
        .grep(&path("/mnt/skills/public"), query, 10)
        .await
        .unwrap()
        .rows;
    assert_eq!(
        lines,
        ["/mnt/skills/public/web/SKILL.md:3: description: Does web"]
    );
    fixture.skills.switch("ann", "web", false).await.unwrap();
    assert!(
        read("ann", "/mnt/skills/public/web/SKILL.md")
            .await
            .unwrap_err()
            .is_not_found(),
        "a disabled skill is not visible"
    );
    for file in ["/mnt/skills/custom/own/SKILL.md", "/mnt/skills/new.md"] {
        assert!(VirtualPath::parse(file).is_err());
        let blocking = files("ann");
        let refused = blocking
            .blocking()
            .write_text(&path(file), "x", crate::sandbox::WriteMode::Replace)
            .unwrap_err();
        assert!(
            matches!(refused.fault(), Some(FileFailure::Unchangeable)),
            "{refused}"
        );
        assert!(blocking.remove_file(&path(file)).await.is_err());
    }
}

#[tokio::test]
async fn users_with_unsafe_ids_have_own_folders() {
    let fixture = Fixture::new();
    fixture.install("../ann", "own").await.unwrap();
    assert_eq!(fixture.names("../ann").await, ["custom/own"]);
    assert!(
        fixture.names("ann").await.is_empty() && !fixture.base.path().join("home/ann").exists()
    );
}
