//! A corpus of names that are meant to get out, put to everything that takes a path.

use std::collections::BTreeSet;

use deerflow_harness::ids::ThreadId;
use deerflow_harness::sandbox::safe_fs::Resolver;
use deerflow_harness::sandbox::thread_dirs::UserDirName;
use deerflow_harness::sandbox::{Root, VirtualPath};
use deerflow_harness::skills::is_skill_name;
use deerflow_harness::uploads::place_named;

use crate::home::{Home, arguments, assert_tells_nothing};
use crate::support::{Dice, setting};

/// Ways to go up, or somewhere else, in the middle of a path.
const STEPS: &[&str] = &[
    "..",
    ".",
    "...",
    "....",
    ".. ",
    " ..",
    "..\t",
    "..\0",
    "\0",
    "..\n",
    "..\r",
    "..%00",
    "%00",
    "%2e%2e",
    "%2E%2E",
    "%252e%252e",
    ".%2e",
    "..%2f",
    "..%2f..%2f",
    "..%5c",
    "..\\",
    "..\\..",
    "\\..\\",
    "%c0%ae%c0%ae",
    "%e0%80%ae%e0%80%ae",
    "..%c0%af",
    "..%ef%bc%8f",
    "\u{2024}\u{2024}",
    "\u{2025}",
    "\u{ff0e}\u{ff0e}",
    "\u{3002}\u{3002}",
    "\u{fe52}\u{fe52}",
    "..\u{2215}",
    "..\u{2044}",
    "..\u{ff0f}",
    "..\u{29f8}",
    "..\u{ff3c}",
    "..\u{200b}",
    "\u{200b}..",
    "\u{feff}..",
    "..\u{ad}",
    "\u{202e}..",
    "..\u{2028}",
    "\u{1b}[2J",
    "..;",
    "..;/",
    "..::$DATA",
    "C:",
    "C:\\",
    "\\\\?\\C:",
    "CON",
    "NUL",
    "AUX.txt",
    "COM1",
    "LPT1",
    "~",
    "~root",
    "$HOME",
    "${PWD}",
    "$(pwd)",
    "`pwd`",
    "*",
    "?",
    "{..,a}",
    "[.][.]",
    "-rf",
    "--",
    "//",
    "///",
    "./.",
    "./..",
    "a/..",
    "a/../..",
    "..//..",
    ".//..",
    "../.",
    "proc",
    "self",
    "fd",
    "%s",
    "{0}",
    "\u{fffd}",
    "e\u{301}",
    "CON.",
    "a.",
    "a ",
    "\u{7f}",
    "\u{85}",
];

/// What to find there.
const GOALS: &[&str] = &["secret.txt", "only-outside.txt", "outside/secret.txt", "real/pic.png", ""];

/// Names made of the steps: each where a path begins, in its middle, at its end, and again and again; and chance mixtures of them.
fn corpus(outside: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for step in STEPS {
        for root in ["/mnt/user-data/workspace", "/mnt/user-data/outputs", "/mnt/skills/public/web"] {
            names.insert(format!("{root}/{step}/secret.txt"));
            names.insert(format!("{root}/{step}"));
        }
        names.insert((*step).to_owned());
        names.insert(format!("/{step}/mnt/user-data/workspace/a"));
        names.insert(format!("/mnt/user-data/{step}/workspace/secret.txt"));
        names.insert(format!("/mnt/user-data{step}/workspace/secret.txt"));
        names.insert(format!("/mnt/user-data/workspace{step}/secret.txt"));
        names.insert(format!("/mnt/user-data/workspace/{}outside/secret.txt", format!("{step}/").repeat(9)));
        names.insert(format!("/mnt/user-data/workspace/{}{outside}/secret.txt", format!("{step}/").repeat(12)));
        names.insert(format!("/{}{outside}/secret.txt", format!("{step}/").repeat(3)));
    }
    let file = format!("{outside}/secret.txt");
    for prefix in [
        "",
        "/",
        "//",
        "file://",
        "file:",
        "/proc/self/root",
        "/proc/1/root",
        "/proc/self/cwd",
        "/dev/fd/..",
        "\\",
        "\\\\?\\",
        "http://localhost",
        "/mnt",
        " ",
    ] {
        names.insert(format!("{prefix}{file}"));
        names.insert(format!("{prefix}{file}/"));
    }
    for evil in ["-evil", "_evil", ".bak", " ", "\u{200b}", "s", "\\", ":"] {
        names.insert(format!("/mnt/user-data{evil}/workspace/a"));
        names.insert(format!("/mnt/user-data/workspace{evil}/a"));
    }
    for long in ["a".repeat(256), "a".repeat(4_096), "a/".repeat(2_100), "../".repeat(1_500), "é".repeat(5_000), "./".repeat(60_000)] {
        names.insert(format!("/mnt/user-data/workspace/{long}"));
        names.insert(long);
    }
    let mut dice = Dice::of(setting("SEED", 1));
    let starts = ["/mnt/user-data/workspace", "/mnt/user-data/uploads", "/mnt/skills", "/mnt/acp-workspace", "", "mnt/user-data", outside];
    while names.len() < 1_500 {
        let steps: Vec<&str> = (0..=dice.below(7)).map(|_| *dice.one_of(STEPS)).collect();
        let between = *dice.one_of(&["/", "/", "//", "\\", "/./", ""]);
        names.insert(format!("{}/{}/{}", dice.one_of(&starts), steps.join(between), dice.one_of(GOALS)));
    }
    names
}

#[tokio::test]
async fn no_name_leads_any_tool_outside() {
    for resolver in [Resolver::Kernel, Resolver::Walk] {
        let home = Home::new(resolver);
        let names = corpus(home.outside().to_str().unwrap());
        let thread_folder = home.files.blocking().dirs().host_path(Root::Workspace).to_str().unwrap().to_owned();
        assert!(names.len() >= 500, "{}", names.len());
        let (mut tries, mut taken) = (0, 0);
        for name in &names {
            let mut answers = vec![home.artifact(name).await, home.upload(name).await];
            for tool in ["read_file", "ls", "glob", "grep", "view_image", "present_files", "write_file", "append", "str_replace"] {
                let called = if tool == "append" { "write_file" } else { tool };
                answers.push(home.call(called, arguments(tool, name, name)).await);
            }
            tries += answers.len();
            for answer in &answers {
                taken += usize::from(answer.is_ok());
                let text = answer.as_ref().unwrap_or_else(|error| error);
                assert_tells_nothing(text, name);
                assert!(!text.contains(&thread_folder), "{name:?} was told where the host has its files: {text}");
            }
            if let Ok(path) = VirtualPath::parse(name) {
                assert!(!path.relative().components().any(|part| matches!(part, "" | "." | "..")), "{name:?}");
            }
            home.assert_outside_is_untouched(name);
        }
        println!("{resolver:?}: {} names, {tries} calls, {taken} of them found something inside", names.len());
        assert!(taken > 0 && taken < tries);
    }
}

#[test]
fn no_name_of_a_user_thread_skill_or_upload_is_a_way() {
    let home = Home::new(Resolver::detect());
    let workspace = home.files.blocking().dirs().host_path(Root::Workspace);
    let depth = workspace.components().count();
    for name in corpus(home.outside().to_str().unwrap()) {
        let folder = UserDirName::from_user_id(&name);
        let is_plain = |text: &str| !text.is_empty() && text.len() <= 255 && !text.contains(['/', '\\', '\0', '.']);
        assert!(is_plain(folder.as_str()), "{name:?}: {folder:?}");
        if let Ok(thread) = ThreadId::parse(&*name) {
            let dirs = crate::support::dirs_of(&home.outside(), thread.as_str());
            let place = dirs.host_path(Root::Workspace);
            assert!(place.starts_with(home.outside().join("users/ann/threads")) && is_plain(thread.as_str()), "{name:?}: {place:?}");
        }
        assert!(!is_skill_name(&name) || is_plain(&name), "{name:?}");
        if let Ok(place) = place_named(&name) {
            let host = home.files.blocking().dirs().host_path(Root::Uploads).join(place.relative().as_str());
            assert_eq!(host.components().count(), depth + 1, "{name:?}: {host:?}");
        }
    }
}
