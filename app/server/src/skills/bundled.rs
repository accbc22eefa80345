//! Skills that are bundled in this binary.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Bundled skills, from the repository's `skills` folder.
const BUNDLED: &[(&str, &str)] = &[
    (
        "public/bootstrap/SKILL.md",
        include_str!("../../../../skills/public/bootstrap/SKILL.md"),
    ),
    (
        "public/data-analysis/SKILL.md",
        include_str!("../../../../skills/public/data-analysis/SKILL.md"),
    ),
    (
        "public/data-analysis/scripts/profile.py",
        include_str!("../../../../skills/public/data-analysis/scripts/profile.py"),
    ),
    (
        "public/deep-research/SKILL.md",
        include_str!("../../../../skills/public/deep-research/SKILL.md"),
    ),
    (
        "public/skill-creator/SKILL.md",
        include_str!("../../../../skills/public/skill-creator/SKILL.md"),
    ),
    (
        "public/skill-creator/scripts/pack.py",
        include_str!("../../../../skills/public/skill-creator/scripts/pack.py"),
    ),
];

/// Writes the bundled skills to a folder below the home, replacing other content.
pub(crate) fn unpack_bundled(home: &Path) -> io::Result<PathBuf> {
    let folder = home.join("bundled-skills");
    let is_there = || {
        BUNDLED.iter().all(|(path, text)| {
            fs::read_to_string(folder.join(path)).is_ok_and(|written| written == *text)
        })
    };
    if is_there() {
        return Ok(folder);
    }
    fs::create_dir_all(home)?;
    let fresh = tempfile::Builder::new()
        .prefix(".bundled-skills-")
        .tempdir_in(home)?;
    for (path, text) in BUNDLED {
        let target = fresh.path().join(path);
        fs::create_dir_all(target.parent().unwrap_or(fresh.path()))?;
        fs::write(target, text)?;
    }
    let placed = match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::rename(fresh.path(), &folder),
    };
    match placed {
        // Another process with the same home may have written them first.
        Err(error) if !is_there() => Err(error),
        _ => Ok(folder),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use harness::clock::SystemClock;
    use harness::config::{AppConfig, ExtensionsFile};
    use harness::skills::{SkillFolders, Skills};

    use super::*;

    async fn names(folder: PathBuf) -> Vec<String> {
        let home = tempfile::tempdir().unwrap();
        let extensions = Arc::new(ExtensionsFile::at(
            home.path().join("extensions_config.json"),
        ));
        let folders = SkillFolders {
            shared: folder,
            home: home.path().to_owned(),
        };
        let skills = Skills::new(
            folders,
            extensions,
            AppConfig::default().extensions,
            Arc::new(SystemClock),
        );
        skills
            .list("ann")
            .await
            .unwrap()
            .iter()
            .map(|skill| skill.name().to_owned())
            .collect()
    }

    #[tokio::test]
    async fn bundled_skills_match_repository_and_are_restored() {
        let home = tempfile::tempdir().unwrap();
        let folder = unpack_bundled(home.path()).unwrap();
        let bundled = names(folder.clone()).await;
        assert_eq!(
            bundled,
            [
                "bootstrap",
                "data-analysis",
                "deep-research",
                "skill-creator"
            ]
        );
        assert_eq!(
            bundled,
            names(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../skills")).await
        );
        fs::write(folder.join("public/bootstrap/SKILL.md"), "spoilt").unwrap();
        fs::write(folder.join("public/stray.md"), "").unwrap();
        assert_eq!(names(unpack_bundled(home.path()).unwrap()).await, bundled);
        assert!(!folder.join("public/stray.md").exists());
    }
}
