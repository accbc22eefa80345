//! Kind `pi-mono`: the cases of configurations and transports, and tests against hostile servers.
#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "flow_cases/config.rs"]
mod config;
#[path = "flow_cases/http_server.rs"]
mod http_server;
mod pi_mono;
#[path = "flow_cases/pi_mono_kit.rs"]
mod pi_mono_kit;
#[path = "flow_cases/transport.rs"]
mod transport;

use std::path::PathBuf;

use serde_json::Value;

/// Returns the folder of the cases: that of variable `FLOW_CASES`, else that of the repository.
#[expect(
    clippy::disallowed_methods,
    reason = "further cases are given to the test from outside"
)]
fn folder() -> PathBuf {
    let own = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/flow_cases");
    std::env::var_os("FLOW_CASES").map_or_else(own, PathBuf::from)
}

#[test]
fn configurations_and_transports_match_all_cases() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    files.sort();
    let (mut count, mut problems) = (0, Vec::new());
    for file in files {
        let case: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let differences = match case["type"].as_str() {
            Some("config") => config::run(&case),
            Some("transport") => transport::run(&case),
            _ => continue,
        };
        count += 1;
        problems.extend(
            differences
                .iter()
                .map(|text| format!("{}: {text}", case["id"])),
        );
    }
    assert!(count > 0, "no case was found");
    assert!(
        problems.is_empty(),
        "{count} cases\n{}",
        problems.join("\n")
    );
}
