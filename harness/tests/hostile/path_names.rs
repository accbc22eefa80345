//! Corpus of names that try to escape, used with everything that accepts a path.

use deerflow_harness::ids::ThreadId;
use deerflow_harness::sandbox::safe_fs::Resolver;
use deerflow_harness::sandbox::thread_dirs::UserDirName;
use deerflow_harness::sandbox::{Root, VirtualPath};
use deerflow_harness::skills::is_skill_name;
use deerflow_harness::testkit::hostile_names;
use deerflow_harness::uploads::upload_path;

use crate::home::{Home, arguments, assert_discloses_nothing};
use crate::support::setting;

#[tokio::test]
async fn path_names_never_escape_through_any_tool() {
    for resolver in [Resolver::Kernel, Resolver::Walk] {
        let home = Home::new(resolver);
        let names = hostile_names(home.outside().to_str().unwrap(), setting("SEED", 1));
        let thread_folder = home
            .files
            .blocking()
            .dirs()
            .host_path(Root::Workspace)
            .to_str()
            .unwrap()
            .to_owned();
        assert!(names.len() >= 500, "{}", names.len());
        let (mut tries, mut taken) = (0, 0);
        for name in &names {
            let mut answers = vec![home.artifact(name).await, home.upload(name).await];
            for tool in [
                "read_file",
                "ls",
                "glob",
                "grep",
                "view_image",
                "present_files",
                "write_file",
                "append",
                "str_replace",
            ] {
                let called = if tool == "append" { "write_file" } else { tool };
                answers.push(home.call(called, arguments(tool, name, name)).await);
            }
            tries += answers.len();
            for answer in &answers {
                taken += usize::from(answer.is_ok());
                let text = answer.as_ref().unwrap_or_else(|error| error);
                assert_discloses_nothing(text, name);
                assert!(
                    !text.contains(&thread_folder),
                    "{name:?} revealed a host path: {text}"
                );
            }
            if let Ok(path) = VirtualPath::parse(name) {
                assert!(
                    !path
                        .relative()
                        .components()
                        .any(|part| matches!(part, "" | "." | "..")),
                    "{name:?}"
                );
            }
            home.assert_outside_is_untouched(name);
        }
        println!(
            "{resolver:?}: {} names, {tries} calls, {taken} of them matched something inside",
            names.len()
        );
        assert!(taken > 0 && taken < tries);
    }
}

#[test]
fn user_thread_skill_and_upload_names_never_escape() {
    let home = Home::new(Resolver::detect());
    let workspace = home.files.blocking().dirs().host_path(Root::Workspace);
    let depth = workspace.components().count();
    for name in hostile_names(home.outside().to_str().unwrap(), setting("SEED", 1)) {
        let folder = UserDirName::from_user_id(&name);
        let is_plain = |text: &str| {
            !text.is_empty() && text.len() <= 255 && !text.contains(['/', '\\', '\0', '.'])
        };
        assert!(is_plain(folder.as_str()), "{name:?}: {folder:?}");
        if let Ok(thread) = ThreadId::parse(&*name) {
            let dirs = crate::support::dirs_of(&home.outside(), thread.as_str());
            let place = dirs.host_path(Root::Workspace);
            assert!(
                place.starts_with(home.outside().join("users/ann/threads"))
                    && is_plain(thread.as_str()),
                "{name:?}: {place:?}"
            );
        }
        assert!(!is_skill_name(&name) || is_plain(&name), "{name:?}");
        if let Ok(place) = upload_path(&name) {
            let host = home
                .files
                .blocking()
                .dirs()
                .host_path(Root::Uploads)
                .join(place.relative().as_str());
            assert_eq!(host.components().count(), depth + 1, "{name:?}: {host:?}");
        }
    }
}
