//! Hostile file names that try to escape the folders of a thread, for tests of all functions that
//! accept a path or a name.

use std::collections::BTreeSet;

use deerflow_core::testkit::seeded_rng::SeededRng;

/// Path traversal steps.
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

/// Target files.
const GOALS: &[&str] = &[
    "secret.txt",
    "only-outside.txt",
    "outside/secret.txt",
    "real/pic.png",
    "",
];

/// Returns at least 1,500 names that try to reach a file `secret.txt` in the folder `outside`, or
/// other files: each step at the start, in the middle and at the end of a path, repeated, and in
/// random combinations.
pub fn hostile_names(outside: &str, seed: u64) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for step in STEPS {
        for root in [
            "/mnt/user-data/workspace",
            "/mnt/user-data/outputs",
            "/mnt/skills/public/web",
        ] {
            names.insert(format!("{root}/{step}/secret.txt"));
            names.insert(format!("{root}/{step}"));
        }
        names.insert((*step).to_owned());
        names.insert(format!("/{step}/mnt/user-data/workspace/a"));
        names.insert(format!("/mnt/user-data/{step}/workspace/secret.txt"));
        names.insert(format!("/mnt/user-data{step}/workspace/secret.txt"));
        names.insert(format!("/mnt/user-data/workspace{step}/secret.txt"));
        names.insert(format!(
            "/mnt/user-data/workspace/{}outside/secret.txt",
            format!("{step}/").repeat(9)
        ));
        names.insert(format!(
            "/mnt/user-data/workspace/{}{outside}/secret.txt",
            format!("{step}/").repeat(12)
        ));
        names.insert(format!(
            "/{}{outside}/secret.txt",
            format!("{step}/").repeat(3)
        ));
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
    for suffix in ["-evil", "_evil", ".bak", " ", "\u{200b}", "s", "\\", ":"] {
        names.insert(format!("/mnt/user-data{suffix}/workspace/a"));
        names.insert(format!("/mnt/user-data/workspace{suffix}/a"));
    }
    for long in [
        "a".repeat(256),
        "a".repeat(4_096),
        "a/".repeat(2_100),
        "../".repeat(1_500),
        "é".repeat(5_000),
        "./".repeat(60_000),
    ] {
        names.insert(format!("/mnt/user-data/workspace/{long}"));
        names.insert(long);
    }
    let chance = SeededRng::of(seed);
    let starts = [
        "/mnt/user-data/workspace",
        "/mnt/user-data/uploads",
        "/mnt/skills",
        "/mnt/acp-workspace",
        "",
        "mnt/user-data",
        outside,
    ];
    while names.len() < 1_500 {
        let steps: Vec<&str> = (0..=chance.below(7)).map(|_| *chance.pick(STEPS)).collect();
        let between = *chance.pick(&["/", "/", "//", "\\", "/./", ""]);
        names.insert(format!(
            "{}/{}/{}",
            chance.pick(&starts),
            steps.join(between),
            chance.pick(GOALS)
        ));
    }
    names
}
