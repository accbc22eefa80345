//! Decisions from a central directory.

use super::*;

fn file(name: &str) -> EntryFacts {
    EntryFacts {
        name: name.to_owned(),
        bytes: 10,
        packed: 10,
        mode: Some(0o100_644),
        has_known_method: true,
        ..EntryFacts::default()
    }
}

fn folder(name: &str) -> EntryFacts {
    EntryFacts {
        is_folder: true,
        mode: Some(0o040_755),
        bytes: 0,
        packed: 0,
        ..file(name)
    }
}

fn paths(entries: &[EntryFacts]) -> Vec<String> {
    let plan = Plan::of(entries, 1_000).unwrap();
    assert_eq!(plan.files[plan.skill_file].path.as_str(), "SKILL.md");
    plan.files
        .iter()
        .map(|file| file.path.as_str().to_owned())
        .collect()
}

fn problem(entries: &[EntryFacts]) -> EntryProblem {
    match Plan::of(entries, 1_000).unwrap_err() {
        ArchiveError::Entry { problem, .. } => problem,
        other => panic!("{other}"),
    }
}

#[test]
fn single_top_folder_is_stripped() {
    assert_eq!(
        paths(&[file("SKILL.md"), file("a/b.txt")]),
        ["SKILL.md", "a/b.txt"]
    );
    assert_eq!(
        paths(&[
            folder("web/"),
            file("web/SKILL.md"),
            folder("web/a/"),
            file("web/a/b.txt")
        ]),
        ["SKILL.md", "a/b.txt"]
    );
    assert!(matches!(
        Plan::of(&[file("web/SKILL.md"), file("readme.md")], 1_000),
        Err(ArchiveError::NoSkill)
    ));
    assert!(matches!(
        Plan::of(&[file("a/SKILL.md"), file("b/x.md")], 1_000),
        Err(ArchiveError::NoSkill)
    ));
}

#[test]
fn metadata_files_and_links_are_skipped() {
    let link = EntryFacts {
        mode: Some(0o120_777),
        ..file("web/link")
    };
    let entries = [
        file(".DS_Store"),
        file("__MACOSX/web/._SKILL.md"),
        file("web/SKILL.md"),
        file("web/.git/config"),
        link,
        file("web/a.py"),
    ];
    assert_eq!(paths(&entries), ["SKILL.md", "a.py"]);
}

#[test]
fn executable_bit_is_retained_and_missing_modes_accepted() {
    let script = EntryFacts {
        mode: Some(0o100_755),
        ..file("run.sh")
    };
    let plain = EntryFacts {
        mode: None,
        ..file("SKILL.md")
    };
    let plan = Plan::of(&[plain, script], 1_000).unwrap();
    assert_eq!(
        plan.files
            .iter()
            .map(|file| file.is_executable)
            .collect::<Vec<_>>(),
        [false, true]
    );
}

#[test]
fn each_malicious_name_is_rejected() {
    for (name, expected) in [
        ("/etc/passwd", EntryProblem::Absolute),
        ("//x", EntryProblem::Absolute),
        ("..", EntryProblem::Climbs),
        ("a/../b", EntryProblem::Climbs),
        ("./a", EntryProblem::Climbs),
        ("", EntryProblem::Climbs),
        ("a//b", EntryProblem::Climbs),
        ("c:\\x", EntryProblem::OddName),
        ("c:x", EntryProblem::OddName),
        ("a\\b", EntryProblem::OddName),
        ("a\u{0}b", EntryProblem::OddName),
        ("a\u{2028}b", EntryProblem::OddName),
        ("a\u{feff}", EntryProblem::OddName),
        ("a\u{e0041}", EntryProblem::OddName),
        ("a /b", EntryProblem::OddName),
        ("...", EntryProblem::OddName),
        (&*"x".repeat(256), EntryProblem::LongName),
        (&*"a/".repeat(17), EntryProblem::LongName),
        ("SKILL.md", EntryProblem::Twice),
        ("skill.MD", EntryProblem::Twice),
        ("SKILL.md/x", EntryProblem::FileAndFolder),
        ("a/skill.md", EntryProblem::NestedSkill),
        ("x.7z", EntryProblem::Archive),
    ] {
        assert_eq!(
            problem(&[file("SKILL.md"), file(name)]),
            expected,
            "{name:?}"
        );
    }
    assert_eq!(
        problem(&[file("SKILL.md"), folder("A/"), file("a/b")]),
        EntryProblem::Twice
    );
    assert_eq!(
        problem(&[file("SKILL.md"), file("a/b"), file("a")]),
        EntryProblem::FileAndFolder
    );
}

#[test]
fn compression_ratio_is_limited() {
    let large = |bytes, packed| EntryFacts {
        bytes,
        packed,
        ..file("large.txt")
    };
    assert_eq!(
        problem(&[file("SKILL.md"), large(2 << 20, 100)]),
        EntryProblem::Bomb
    );
    assert!(Plan::of(&[file("SKILL.md"), large(2 << 20, 20 << 10)], 1_000).is_ok());
    let together: Vec<EntryFacts> = (0..400)
        .map(|at| EntryFacts {
            name: format!("f{at}"),
            ..large(1 << 20, 0)
        })
        .chain([file("SKILL.md")])
        .collect();
    assert!(matches!(
        Plan::of(&together, 1 << 20),
        Err(ArchiveError::Bomb)
    ));
    assert!(Plan::of(&together, 10 << 20).is_ok());
    assert!(Plan::of(&[large(u64::MAX, u64::MAX), large(5, 5)], u64::MAX).is_err());
}
