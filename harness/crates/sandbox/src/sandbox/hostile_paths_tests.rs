//! Corpus of malicious names: each one is rejected or denotes a harmless file beneath its root.

use super::blocking_files::{Occurrences, WriteMode};
use super::line_range::{LineRange, TextRead};
use super::safe_fs::Resolver;
use super::test_support::{RESOLVERS, TestHome};
use super::virtual_paths::VirtualPath;

/// Absolute texts that must not be accepted as a virtual path.
const REFUSED: &[&str] = &[
    // empty and relative
    "",
    " ",
    ".",
    "..",
    "~",
    "~root/.ssh/id_rsa",
    "workspace/a",
    "./a",
    "../a",
    "mnt/user-data/workspace/a",
    " /mnt/user-data/workspace/a",
    "\u{feff}/mnt/user-data/workspace/a",
    "-rf",
    "$HOME/a",
    "${HOME}/a",
    "`id`",
    // host files
    "/",
    "//",
    "/etc/passwd",
    "/etc/shadow",
    "//etc/passwd",
    "/proc/self/environ",
    "/proc/self/root/etc/passwd",
    "/proc/1/environ",
    "/proc/self/fd/0",
    "/proc/self/cwd/a",
    "/dev/null",
    "/dev/sda",
    "/dev/tcp/127.0.0.1/80",
    "/sys/kernel",
    "/root/.bashrc",
    "/var/run/docker.sock",
    "/tmp/a",
    "/home",
    "/.deer-flow/config.yaml",
    // prefixes that only look valid
    "/mnt",
    "/mnt/",
    "/mnt/user-data",
    "/mnt/user-data/",
    "/mnt/user-data/.",
    "/mnt/user-data-evil/workspace/a",
    "/mnt/user-dat/workspace/a",
    "/mnt/user-data/workspace-evil/a",
    "/mnt/user-data/workspaces/a",
    "/mnt/user-data/work",
    "/mnt/user-data/a",
    "/mnt/user-data.bak/workspace/a",
    "/mnt/user_data/workspace/a",
    "/mnt/user-data /workspace/a",
    "/mnt/user-data/ workspace/a",
    "/mnt/user-data/workspace /a",
    "/MNT/USER-DATA/WORKSPACE/a",
    "/mnt/user-data/WORKSPACE/a",
    "/mnt/user-data/Outputs/a",
    "/mnt/skills/public/a",
    "/mnt/skills-extra/a",
    "/mnt/acp-workspace/a",
    "/x/mnt/user-data/workspace/a",
    "/mnt/user-data/\u{200b}workspace/a",
    "/mnt/user-data/w\u{043e}rkspace/a",
    "/mnt/user\u{2010}data/workspace/a",
    "/mnt/user-data%2fworkspace/a",
    "/mnt%2fuser-data/workspace/a",
    "%2fmnt%2fuser-data%2fworkspace%2fa",
    // parent segments
    "/mnt/user-data/..",
    "/mnt/user-data/../etc/passwd",
    "/mnt/user-data/workspace/..",
    "/mnt/user-data/workspace/../a",
    "/mnt/user-data/workspace/../outputs/a",
    "/mnt/user-data/workspace/a/../b",
    "/mnt/user-data/workspace/a/..",
    "/mnt/user-data/workspace/../../../etc/passwd",
    "/mnt/user-data/workspace/./../a",
    "/mnt/user-data/workspace//../a",
    "/mnt/user-data/workspace/../",
    "/mnt/user-data/./../user-data/workspace/a",
    "/../mnt/user-data/workspace/a",
    "/mnt/../etc",
    "/mnt/user-data/workspace/a/b/c/../../../../x",
    "/mnt/user-data/workspace/..//..//x",
    // backslashes, drives, network shares
    "\\",
    "\\mnt\\user-data\\workspace\\a",
    "C:\\Windows\\win.ini",
    "C:/Windows/win.ini",
    "c:a",
    "C:",
    "D:\\",
    "\\\\server\\share\\a",
    "//server/share/a",
    "\\\\?\\C:\\a",
    "\\\\.\\PhysicalDrive0",
    "/C:/Windows/win.ini",
    "/mnt/user-data/workspace\\a",
    "/mnt/user-data/workspace/..\\a",
    "/mnt/user-data/workspace/..\\..\\..\\a",
    "/mnt/user-data/workspace/a\\..\\b",
    "/mnt/user-data\\workspace\\a",
    "/mnt/user-data/workspace/\\",
    "/mnt/user-data/workspace/C:\\a",
    "/mnt/user-data/workspace/\\\\server\\share",
    // URLs
    "file:///etc/passwd",
    "file:///mnt/user-data/workspace/a",
    "http://localhost/a",
    "data:,a",
    "ftp://h/a",
    // NUL, control characters, line breaks
    "\0",
    "/mnt/user-data/workspace/\0",
    "/mnt/user-data/workspace/a\0.txt",
    "/mnt/user-data/workspace\0/a",
    "/mnt/user-data/workspace/a\0/../../etc",
    "/mnt/user-data/workspace/a\nb",
    "/mnt/user-data/workspace/a\rb",
    "/mnt/user-data/workspace/a\tb",
    "/mnt/user-data/workspace/\u{1b}[2J",
    "/mnt/user-data/workspace/\u{7f}",
    "/mnt/user-data/workspace/\u{85}a",
    "/mnt/user-data/workspace/a\u{2028}b",
    "/mnt/user-data/workspace/a\u{2029}b",
    "/mnt/user-data/workspace/a\u{8}",
    "/mnt/user-data/workspace/\u{1}",
    // text direction
    "/mnt/user-data/workspace/\u{202e}txt.exe",
    "/mnt/user-data/workspace/a\u{202d}b",
    "/mnt/user-data/workspace/\u{2066}a\u{2069}",
    "/mnt/user-data/workspace/a\u{202a}b\u{202c}",
    "/mnt/user-data/workspace/\u{2067}a",
];

/// Names beneath the workspace that look dangerous but are ordinary names on the supported systems.
const HARMLESS: &[&str] = &[
    // dots other than two ASCII dots
    "...",
    "....",
    "..a",
    "a..",
    ".. ",
    " ..",
    ".a",
    "a.",
    "a. .",
    ". .",
    "..%00",
    "\u{2024}\u{2024}",
    "\u{2025}",
    "\u{2026}",
    "\u{ff0e}\u{ff0e}",
    "\u{3002}\u{3002}",
    "\u{fe52}\u{fe52}",
    "..\u{200b}",
    "\u{200b}..",
    "..\u{ad}",
    // characters that resemble a slash
    "..\u{2215}a",
    "..\u{2044}a",
    "..\u{ff0f}a",
    "..\u{29f8}a",
    "..\u{ff3c}a",
    "a\u{338}",
    // encodings
    "%2e%2e",
    "%2e%2e%2fa",
    "..%2fa",
    "..%5ca",
    "%252e%252e%252fa",
    "..%c0%afa",
    "..%u2216a",
    "%00",
    "&#46;&#46;",
    "..;",
    "..;a=b",
    "a%0ab",
    "=2E=2E",
    "u002e",
    // names with a meaning on other systems or in shells
    "CON",
    "NUL",
    "aux.txt",
    "COM1",
    "LPT1.txt",
    "C:",
    "c:a",
    "a:stream:$DATA",
    "a~1",
    "~",
    "~root",
    "-",
    "-rf",
    "--help",
    "$HOME",
    "${PATH}",
    "$(id)",
    "`id`",
    "a;b",
    "a|b",
    "a&b",
    "a>b",
    "*",
    "?",
    "[a]",
    "{a,b}",
    "!",
    "#",
    "'",
    "\"",
    "a b",
    " a",
    "a ",
    "%s%n",
    "{0}",
    "<script>",
    "' OR 1=1 --",
    "null",
    "undefined",
    // names with a special meaning
    ".git",
    ".env",
    ".ssh",
    "proc",
    "self",
    "etc",
    "passwd",
    "mnt",
    "user-data",
    "workspace",
    "con.fig",
    ".upload-1-1.part",
    ".removing-t1",
    ".lifted-1",
    "users",
    "threads",
    // scripts, joiners, emoji
    "报告.md",
    "تقرير.txt",
    "דוח.txt",
    "отчёт",
    "é",
    "e\u{301}",
    "👩\u{200d}💻.png",
    "\u{200f}a",
    "\u{feff}a",
    "ﬀ",
    "İ",
    // other spellings of the same name
    "a//b",
    "a/./b",
    "./a",
    "a/",
    "a/.",
    "//a",
    "mnt/user-data/workspace/a",
];

fn too_long_paths() -> Vec<String> {
    let workspace = "/mnt/user-data/workspace/";
    vec![
        format!("{workspace}{}", "a".repeat(256)),
        format!("{workspace}{}", "é".repeat(128)),
        format!("{workspace}{}", "a".repeat(4096)),
        format!("{workspace}{}", "a/".repeat(2100)),
        format!("{workspace}{}b", "./".repeat(2100)),
        format!("{workspace}{}etc/passwd", "../".repeat(1500)),
        format!("/{}", "/".repeat(100_000)),
        "x".repeat(1_000_000),
    ]
}

#[test]
fn corpus_is_large_without_duplicates() {
    let all: std::collections::HashSet<&str> = REFUSED.iter().chain(HARMLESS).copied().collect();
    assert!(REFUSED.len() + HARMLESS.len() >= 200);
    assert!(all.len() + 10 > REFUSED.len() + HARMLESS.len());
}

#[test]
fn rejected_names_fail_as_virtual_and_host_paths() {
    let fixture = TestHome::with_roots(Resolver::detect());
    let long = too_long_paths();
    for raw in REFUSED
        .iter()
        .copied()
        .chain(long.iter().map(String::as_str))
    {
        assert!(VirtualPath::parse(raw).is_err(), "{raw:.80?}");
        let shown = fixture.files.resolve_for_display(raw);
        assert!(shown.is_err(), "{raw:.80?}");
        let text = shown.expect_err("refused").to_string();
        assert!(
            text.len() < 2000 && !text.contains(['\n', '\0', '\u{1b}']),
            "{text}"
        );
    }
}

#[test]
fn harmless_names_stay_beneath_workspace() {
    for resolver in RESOLVERS {
        for name in HARMLESS {
            let fixture = TestHome::with_roots(resolver);
            let files = fixture.files.blocking();
            let raw = format!("/mnt/user-data/workspace/{name}");
            let path = VirtualPath::parse(&raw).unwrap_or_else(|error| panic!("{name:?}: {error}"));
            files
                .write_text(&path, "one", WriteMode::Replace)
                .unwrap_or_else(|error| panic!("{name:?}: {error}"));
            files
                .write_text(&path, " two", WriteMode::Append)
                .expect("append");
            assert_eq!(
                files
                    .replace(&path, "two", "three", Occurrences::All)
                    .expect("replace"),
                1
            );
            let read = files.read_text(&path, LineRange::ALL).expect("read");
            assert_eq!(
                read,
                TextRead::Text {
                    text: "one three".to_owned(),
                    first_line: 1
                },
                "{name:?}"
            );
            let on_disk = fixture.workspace().join(path.relative().as_str());
            assert!(
                std::fs::symlink_metadata(on_disk)
                    .expect("beneath the workspace")
                    .is_file()
            );
            fixture.assert_outside_is_untouched();
        }
    }
}
