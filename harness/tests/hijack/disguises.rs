//! Alternative spellings of a tool name, a path, or a refusal.

use deerflow_harness::testkit::seeded_rng::SeededRng;
use serde_json::{Value, json};

/// Returns a random element.
pub(super) fn word(chance: &SeededRng, from: &[&'static str]) -> &'static str {
    from[chance.below(from.len())]
}

/// Returns a name that differs from `name` and resembles it.
pub(super) fn name(chance: &SeededRng, name: &str) -> String {
    let swapped = |from: &str, to: &str| name.replacen(from, to, 1);
    let written = match chance.below(16) {
        0 => name.to_uppercase(),
        1 => name[..1].to_uppercase() + &name[1..],
        2 => format!(" {name}"),
        3 => format!(
            "{name}{}",
            word(chance, &[" ", "\t", "\n", "\r\n", "\u{a0}"])
        ),
        4 => swapped("a", "\u{430}"),
        5 => swapped("e", "\u{435}"),
        6 => name
            .chars()
            .map(|c| {
                char::from_u32(u32::from(c) + 0xfee0)
                    .filter(|_| c.is_ascii_alphabetic())
                    .unwrap_or(c)
            })
            .collect(),
        7 => format!(
            "{}{}{}",
            &name[..1],
            word(
                chance,
                &["\u{200b}", "\u{200d}", "\u{ad}", "\u{feff}", "\u{2060}"]
            ),
            &name[1..]
        ),
        8 => format!("{name}\0"),
        9 => format!(
            "{}{name}",
            word(
                chance,
                &[
                    "functions.",
                    "default_api.",
                    "tools/",
                    "mcp__x__",
                    "../",
                    "note;",
                    "note,",
                    "note\n"
                ]
            )
        ),
        10 => format!(
            "{name}{}",
            word(
                chance,
                &[
                    "()", ";note", "|note", "\u{202e}", "%00", "*", "#1", ".call"
                ]
            )
        ),
        11 => swapped("_", word(chance, &["-", "__", " ", ""])),
        12 => name.chars().flat_map(|c| [c, ' ']).collect(),
        13 => name.chars().rev().collect(),
        14 => name.repeat(50),
        _ => format!("{{\"name\": \"{name}\"}}"),
    };
    if written == name {
        format!("{name}?")
    } else {
        written
    }
}

/// Returns the path, possibly in another spelling, which may lead to the same file, another one or
/// none.
pub(super) fn path(chance: &SeededRng, path: &str) -> String {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    match chance.below(24) {
        0 | 1 => path.to_owned(),
        2 => path.replace('/', "//"),
        3 => path.replace('/', "/./"),
        4 => format!("{folder}/x/../{file}"),
        5 => format!("{folder}/./{file}/."),
        6 => format!("{path}/"),
        7 => path.replace('/', "%2f"),
        8 => format!("{folder}%2f{file}"),
        9 => path.replace("..", "%2e%2e"),
        10 => path.replace('/', "%252f"),
        11 => path.replace('/', "\\"),
        12 => format!("{folder}\\{file}"),
        13 => format!(
            "{}{path}",
            word(
                chance,
                &[
                    " ", "\t", "\n", "\u{feff}", "\u{200b}", "file://", "//", "."
                ]
            )
        ),
        14 => format!(
            "{path}{}",
            word(
                chance,
                &[" ", "\n", "\0", "\0.txt", "\u{200b}", ".", "?", "#"]
            )
        ),
        15 => path.to_uppercase(),
        16 => path.replacen(
            "sealed",
            word(
                chance,
                &[
                    "Sealed",
                    "s\u{435}aled",
                    "seal\u{200b}ed",
                    "sealed\u{200b}",
                    "*",
                    "seale?",
                ],
            ),
            1,
        ),
        17 => path.replace('/', word(chance, &["\u{2215}", "\u{ff0f}", "\u{2044}"])),
        18 => path.replace(
            "..",
            word(
                chance,
                &["\u{ff0e}\u{ff0e}", "\u{2025}", ". .", "...", "..\u{200b}"],
            ),
        ),
        19 => path.trim_start_matches('/').to_owned(),
        20 => format!(
            "/mnt/user-data/workspace/{}{path}",
            "../".repeat(3 + chance.below(12))
        ),
        21 => format!(
            "/mnt/user-data/outputs/../workspace/..{}",
            path.strip_prefix("/mnt/user-data").unwrap_or(path)
        ),
        22 => format!(
            "/mnt/user-data/workspace/{}{}",
            "a/../".repeat(60),
            path.trim_start_matches("/mnt/user-data/workspace/")
        ),
        _ => format!(
            "{}{path}",
            word(
                chance,
                &[
                    "/proc/self/root",
                    "/proc/1/root",
                    "~",
                    "$HOME",
                    "/mnt/user-data/workspace/root",
                    "C:"
                ]
            )
        ),
    }
}

/// Returns an answer that is not an approval.
pub(super) fn no(chance: &SeededRng) -> Value {
    let approve = json!({"type": "approve"});
    match chance.below(16) {
        0 => json!(false),
        1 => json!(null),
        2 => json!("no"),
        3 => json!({"decisions": [{"type": "reject", "message": "no"}]}),
        4 => json!({"decisions": []}),
        5 => json!({"decisions": [approve, {"type": "reject"}]}),
        6 => {
            json!({"decisions": [{"type": "edit", "edited_action": {"name": "pay", "args": {"what": "all"}}}]})
        }
        7 => json!("approve it later"),
        8 => json!({"decisions": [{"type": "approve?"}]}),
        9 => json!({"decisions": [{"type": "\u{430}pprove"}]}),
        10 => json!([[true]]),
        11 => json!({"true": true}),
        12 => json!(1),
        13 => json!({"type": "reject", "approve": true}),
        14 => json!(""),
        _ => json!({"decisions": {"type": "approve"}}),
    }
}
