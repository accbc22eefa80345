//! Malformed and ambiguous arguments.

use deerflow_harness::testkit::seeded_rng::SeededRng;
use serde_json::json;

use crate::attempt::{Attempt, Case, Expectation};
use crate::disguises::word;

const SEALED: &str = "/mnt/user-data/workspace/sealed/plan.txt";

pub(super) fn malformed(chance: &SeededRng) -> Case {
    let name = |chance: &SeededRng| {
        word(
            chance,
            &[
                "pay",
                "send_message",
                "read_file",
                "write_file",
                "note",
                "bash",
                "",
            ],
        )
    };
    let unreadable = |args: &str| Attempt::raw(Expectation::Open, name(chance), args);
    let open = |tool: &str, args: &str| Attempt::raw(Expectation::Open, tool, args);
    let denied = |tool: &str, args: &str| Attempt::raw(Expectation::Denied, tool, args);
    let call = |_| {
        vec![match chance.below(16) {
            0 => unreadable(r#"{"what": "everything""#),
            1 => unreadable(r#"["everything"]"#),
            2 => unreadable("everything"),
            3 => unreadable("null"),
            4 => unreadable(r#"{"what": "a"}{"what": "b"}"#),
            5 => unreadable("{'what': 'everything'}"),
            6 => unreadable(&"[".repeat(2_000)),
            7 => unreadable("{\"what\": \"\\ud800\"}"),
            8 => denied(
                "read_file",
                &format!(
                    r#"{{"path": "/mnt/user-data/workspace/report.txt", "path": "{SEALED}"}}"#
                ),
            ),
            9 => open(
                "read_file",
                &format!(
                    r#"{{"path": "{SEALED}", "path": "/mnt/user-data/workspace/report.txt"}}"#
                ),
            ),
            10 => denied("read_file", &json!({ "path": [SEALED] }).to_string()),
            11 => denied(
                "read_file",
                &json!({ "path": { "of": SEALED } }).to_string(),
            ),
            12 => denied(
                "write_file",
                &json!({ "path": { (SEALED): 1 }, "content": "evil" }).to_string(),
            ),
            13 => open(
                "read_file",
                &json!({ "file_path": SEALED, "Path": SEALED, "path ": SEALED }).to_string(),
            ),
            14 => denied("pay", ""),
            _ => denied(
                "pay",
                &json!({ "what": { "deep": [[[[["everything"]]]]] } }).to_string(),
            ),
        }]
    };
    Case::new((0..=chance.below(4)).map(call).collect())
}
