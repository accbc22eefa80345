//! Tests of the installation, edit, removal and restoration of skills.

use super::*;

#[tokio::test]
async fn archive_install_is_atomic() {
    let fixture = Fixture::new();
    let own = fixture.install("ann", "own").await.unwrap();
    assert!(own.is_editable() && own.folder.host.join("scripts/run.py").is_file());
    assert!(matches!(
        fixture.install("ann", "own").await,
        Err(SkillError::Exists(_))
    ));
    for (what, bytes) in hostile() {
        let refused = fixture.skills.install("ann", fixture.archive(&bytes)).await;
        assert!(
            matches!(refused, Err(SkillError::Archive(_))),
            "{what}: {refused:?}"
        );
    }
    assert_eq!(fixture.names("ann").await, ["custom/own"]);
    let mut remaining: Vec<String> =
        fs::read_dir(fixture.base.path().join("home/users/ann/skills/custom"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
    remaining.sort();
    assert_eq!(remaining, [".history", "own"]);
}

#[tokio::test]
async fn concurrent_installs_of_same_skill_succeed_once() {
    let fixture = Fixture::new();
    let (a, b) = tokio::join!(fixture.install("ann", "own"), fixture.install("ann", "own"));
    assert!(a.is_ok() != b.is_ok());
    assert_eq!(fixture.names("ann").await, ["custom/own"]);
}

#[tokio::test]
async fn custom_skill_is_edited_removed_and_restored() {
    let fixture = Fixture::new();
    fixture.write("shared/public/web/SKILL.md", &skill_text("web"));
    fixture.install("ann", "own").await.unwrap();
    let skills = &fixture.skills;
    let new = skill_text("own") + "More.\n";
    let (skill, text) = skills.edit("ann", "own", new.clone()).await.unwrap();
    assert_eq!((skill.name(), &text), ("own", &new));
    for bad in [
        "no frontmatter".to_owned(),
        skill_text("other"),
        skill_text("own") + &"x".repeat(2 << 20),
    ] {
        assert!(matches!(
            skills.edit("ann", "own", bad).await,
            Err(SkillError::Frontmatter(_) | SkillError::Refused(_))
        ));
    }
    for (user, name) in [
        ("bob", "own"),
        ("ann", "web"),
        ("ann", "../own"),
        ("ann", ".history"),
    ] {
        assert!(
            matches!(
                skills.edit(user, name, new.clone()).await,
                Err(SkillError::NotFound(_))
            ),
            "{user} {name}"
        );
        assert!(
            matches!(skills.own(user, name).await, Err(SkillError::NotFound(_))),
            "{user} {name}"
        );
        assert!(
            matches!(
                skills.remove(user, name).await,
                Err(SkillError::NotFound(_))
            ),
            "{user} {name}"
        );
        assert!(
            matches!(
                skills.roll_back(user, name, -1).await,
                Err(SkillError::NotFound(_))
            ),
            "{user} {name}"
        );
    }
    skills.remove("ann", "own").await.unwrap();
    assert_eq!(fixture.names("ann").await, ["public/web"]);
    assert_eq!(
        skills.roll_back("ann", "own", -1).await.unwrap().1,
        new,
        "a deleted skill is restored"
    );
    assert_eq!(
        skills.roll_back("ann", "own", 1).await.unwrap().1,
        skill_text("own"),
        "before the edit"
    );
    assert!(
        matches!(
            skills.roll_back("ann", "own", 0).await,
            Err(SkillError::Refused(_))
        ),
        "there is no text before the installation"
    );
    assert!(matches!(
        skills.roll_back("ann", "own", i64::MIN).await,
        Err(SkillError::Refused(_))
    ));
    let actions: Vec<Revision> = skills
        .history("ann", "own")
        .await
        .unwrap()
        .into_iter()
        .map(|entry| entry.action)
        .collect();
    assert_eq!(
        actions,
        [
            Revision::Install,
            Revision::HumanEdit,
            Revision::HumanDelete,
            Revision::Rollback,
            Revision::Rollback
        ]
    );
    assert!(matches!(
        skills.history("bob", "own").await,
        Err(SkillError::NotFound(_))
    ));
}
