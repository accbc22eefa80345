//! Directory names, and isolation of threads and users.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use proptest::prelude::*;

use super::super::test_support::thread_id;
use super::*;

fn name(raw: &str) -> String {
    UserDirName::from_user_id(raw).as_str().to_owned()
}

fn dirs(home: &Path) -> ThreadDirs {
    ThreadDirs::new(home.into(), Resolver::detect(), "alice", &thread_id("t-1"))
}

#[test]
fn safe_user_id_is_directory_name() {
    for raw in [
        "default",
        "alice",
        "A_b-9",
        "0e8dd1a4-5a7c-4a36-9b1c-a1b2c3d4e5f6",
    ] {
        assert_eq!(name(raw), raw);
    }
}

#[test]
fn unsafe_user_id_gets_readable_derived_name() {
    assert_eq!(name("a@b.c"), "a-b-c-d648b243a3e817ea");
    assert_eq!(name(""), "-e3b0c44298fc1c14");
    assert!(name("..").starts_with("---"));
    assert!(name("王").starts_with("--"));
    assert_ne!(name("a.b"), name("a@b"));
}

#[test]
fn id_imitating_derived_name_gets_other_directory() {
    let victim = name("a@b.c");
    assert_ne!(name(&victim), victim);
}

#[test]
fn long_id_fits_in_a_name() {
    let (one, other) = (name(&"u".repeat(5000)), name(&"u".repeat(5001)));
    assert!(one.len() <= 255);
    assert_ne!(one, other);
}

#[test]
fn directories_are_created_on_first_use_with_strict_modes() {
    let base = tempfile::tempdir().expect("temporary directory");
    let home = base.path().join("not/yet/there");
    let dirs = dirs(&home);
    assert!(matches!(
        dirs.open(Root::Workspace),
        Err(FileFailure::NotFound)
    ));
    assert!(!home.exists());
    dirs.create(Root::Workspace).expect("create");
    let mode = |path: &Path| std::fs::metadata(path).expect("made").mode() & 0o777;
    let workspace = home.join("users/alice/threads/t-1/user-data/workspace");
    assert_eq!(dirs.host_path(Root::Workspace), workspace);
    assert_eq!(mode(&workspace) & 0o022, 0);
    assert_eq!(mode(&home.join("users")), 0o700);
    assert_eq!(mode(&home.join("users/alice/threads/t-1/user-data")), 0o700);
    assert!(matches!(
        dirs.open(Root::Outputs),
        Err(FileFailure::NotFound)
    ));
}

#[test]
fn home_may_be_a_link_but_nothing_inside() {
    let base = tempfile::tempdir().expect("temporary directory");
    std::fs::create_dir(base.path().join("disk")).expect("disk");
    symlink("disk", base.path().join("home")).expect("link");
    let dirs = dirs(&base.path().join("home"));
    dirs.create(Root::Uploads).expect("create");
    let uploads = dirs.host_path(Root::Uploads);
    std::fs::remove_dir(&uploads).expect("remove");
    symlink(base.path(), &uploads).expect("link");
    assert!(matches!(
        dirs.open(Root::Uploads),
        Err(FileFailure::Symlink)
    ));
    assert!(matches!(
        dirs.create(Root::Uploads),
        Err(FileFailure::Symlink)
    ));
}

#[test]
fn root_without_permissions_is_restored() {
    let base = tempfile::tempdir().expect("temporary directory");
    let dirs = dirs(base.path());
    dirs.create(Root::Workspace).expect("create");
    let workspace = dirs.host_path(Root::Workspace);
    for closed in [0, 0o555, 0o055] {
        std::fs::set_permissions(&workspace, std::fs::Permissions::from_mode(closed))
            .expect("chmod");
        dirs.create(Root::Workspace).expect("restored");
        let mode = std::fs::metadata(&workspace).expect("there").mode() & 0o777;
        assert_eq!(mode, closed | 0o700, "{closed:o}");
    }
}

#[test]
fn resolve_for_display_maps_host_paths() {
    let dirs = dirs(Path::new("/srv/home"));
    let host = "/srv/home/users/alice/threads/t-1/user-data";
    let shown = |raw: &str| dirs.resolve_for_display(raw).map(|path| path.to_string());
    let virtual_report = Ok("/mnt/user-data/outputs/report.md".to_owned());
    assert_eq!(shown("/mnt/user-data/outputs/report.md"), virtual_report);
    assert_eq!(
        shown(&format!("{host}/outputs/./report.md")),
        virtual_report
    );
    for raw in [
        format!("{host}/outputs/../../../../x"),
        format!("{host}/outputs-evil/a"),
        format!("{host}/other/a"),
        "/srv/home/users/bob/threads/t-1/user-data/outputs/a".to_owned(),
        "outputs/a".to_owned(),
    ] {
        assert!(shown(&raw).is_err(), "{raw}");
    }
}

proptest! {
    #[test]
    fn user_directory_is_always_one_safe_name(raw in any::<String>()) {
        let name = name(&raw);
        prop_assert!(!name.is_empty() && name.len() <= 255);
        prop_assert!(name.chars().all(is_plain_char));
    }

    #[test]
    fn users_never_share_a_directory(one in "[a-c.@-]{0,6}", other in "[a-c.@-]{0,6}") {
        prop_assert_eq!(name(&one) == name(&other), one == other);
    }
}
