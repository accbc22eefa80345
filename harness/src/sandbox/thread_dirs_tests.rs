//! Names of directories, and that threads and users stay apart.

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
fn a_harmless_user_id_is_the_name_itself() {
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
fn any_other_user_id_gets_a_readable_unique_stand_in() {
    assert_eq!(name("a@b.c"), "a-b-c-d648b243a3e817ea");
    assert_eq!(name(""), "-e3b0c44298fc1c14");
    assert!(name("..").starts_with("---"));
    assert!(name("王").starts_with("--"));
    assert_ne!(name("a.b"), name("a@b"));
}

#[test]
fn an_id_that_imitates_a_stand_in_does_not_get_the_same_directory() {
    let victim = name("a@b.c");
    assert_ne!(name(&victim), victim);
}

#[test]
fn an_over_long_id_still_fits_in_a_name() {
    let (one, other) = (name(&"u".repeat(5000)), name(&"u".repeat(5001)));
    assert!(one.len() <= 255);
    assert_ne!(one, other);
}

#[test]
fn directories_are_made_on_first_use_with_narrow_modes() {
    let base = tempfile::tempdir().expect("temporary directory");
    let home = base.path().join("not/yet/there");
    let dirs = dirs(&home);
    assert!(matches!(dirs.open(Root::Workspace), Err(Fault::NotFound)));
    assert!(!home.exists());
    dirs.create(Root::Workspace).expect("create");
    let mode = |path: &Path| std::fs::metadata(path).expect("made").mode() & 0o777;
    let workspace = home.join("users/alice/threads/t-1/user-data/workspace");
    assert_eq!(dirs.host_path(Root::Workspace), workspace);
    assert_eq!(mode(&workspace) & 0o022, 0);
    assert_eq!(mode(&home.join("users")), 0o700);
    assert_eq!(mode(&home.join("users/alice/threads/t-1/user-data")), 0o700);
    assert!(matches!(dirs.open(Root::Outputs), Err(Fault::NotFound)));
}

#[test]
fn the_home_may_be_behind_a_link_but_nothing_in_it() {
    let base = tempfile::tempdir().expect("temporary directory");
    std::fs::create_dir(base.path().join("disk")).expect("disk");
    symlink("disk", base.path().join("home")).expect("link");
    let dirs = dirs(&base.path().join("home"));
    dirs.create(Root::Uploads).expect("create");
    let uploads = dirs.host_path(Root::Uploads);
    std::fs::remove_dir(&uploads).expect("remove");
    symlink(base.path(), &uploads).expect("link");
    assert!(matches!(dirs.open(Root::Uploads), Err(Fault::Symlink)));
    assert!(matches!(dirs.create(Root::Uploads), Err(Fault::Symlink)));
}

#[test]
fn a_root_that_a_command_closed_is_opened_again() {
    let base = tempfile::tempdir().expect("temporary directory");
    let dirs = dirs(base.path());
    dirs.create(Root::Workspace).expect("create");
    let workspace = dirs.host_path(Root::Workspace);
    for closed in [0, 0o555, 0o055] {
        std::fs::set_permissions(&workspace, std::fs::Permissions::from_mode(closed))
            .expect("chmod");
        dirs.create(Root::Workspace).expect("opened again");
        let mode = std::fs::metadata(&workspace).expect("there").mode() & 0o777;
        assert_eq!(mode, closed | 0o700, "{closed:o}");
    }
}

#[test]
fn host_paths_of_the_roots_are_shown_as_virtual_ones() {
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
    fn a_user_directory_is_always_one_harmless_name(raw in any::<String>()) {
        let name = name(&raw);
        prop_assert!(!name.is_empty() && name.len() <= 255);
        prop_assert!(name.chars().all(is_harmless));
    }

    #[test]
    fn different_users_never_share_a_directory(one in "[a-c.@-]{0,6}", other in "[a-c.@-]{0,6}") {
        prop_assert_eq!(name(&one) == name(&other), one == other);
    }
}
