//! Runs the acceptance cases of a folder: `FLOW_CASES`, else those of this repository.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "flow_cases/assets.rs"]
mod assets;
#[cfg(feature = "http")]
#[path = "flow_cases/config.rs"]
mod config;
#[path = "flow_cases/flow.rs"]
mod flow;
#[cfg(feature = "http")]
#[path = "flow_cases/http_server.rs"]
#[expect(dead_code, reason = "the tests of hostile servers use the rest")]
mod http_server;
#[path = "flow_cases/matching.rs"]
mod matching;
#[cfg(feature = "http")]
#[path = "flow_cases/pi_mono_kit.rs"]
mod pi_mono_kit;
#[path = "flow_cases/recorder.rs"]
mod recorder;
#[cfg(feature = "http")]
#[path = "flow_cases/results.rs"]
mod results;
#[path = "support/mod.rs"]
mod support;
#[cfg(feature = "http")]
#[path = "flow_cases/transport.rs"]
mod transport;
#[path = "flow_cases/validation.rs"]
mod validation;

use std::path::PathBuf;

use serde_json::Value;

#[expect(
    clippy::disallowed_methods,
    reason = "the folder of a test run is its parameter"
)]
fn folder() -> PathBuf {
    std::env::var_os("FLOW_CASES").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/flow_cases")),
        PathBuf::from,
    )
}

fn cases() -> Vec<(String, Value)> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("the folder of cases")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    files.sort();
    let read = |path: PathBuf| {
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let text = std::fs::read_to_string(&path).expect("a readable case");
        (name, serde_json::from_str(&text).expect("a case in JSON"))
    };
    files.into_iter().map(read).collect()
}

/// Returns the differences of a case. `None` if nothing runs cases of its type.
fn differences(case: &Value) -> Option<Vec<String>> {
    match case["type"].as_str() {
        Some("flow") => Some(flow::run(case)),
        Some("assets") => Some(assets::run(case)),
        #[cfg(feature = "http")]
        Some("config") => Some(config::run(case)),
        #[cfg(feature = "http")]
        Some("transport") => Some(transport::run(case)),
        _ => None,
    }
}

#[test]
fn flow_cases() {
    let cases = cases();
    assert!(!cases.is_empty(), "no cases in {}", folder().display());
    let mut failed = 0;
    for (name, case) in &cases {
        match differences(case) {
            None => println!("not run  {name}"),
            Some(differences) if differences.is_empty() => println!("ok       {name}"),
            Some(differences) => {
                failed += 1;
                println!("FAILED   {name}");
                differences
                    .iter()
                    .for_each(|difference| println!("           {difference}"));
            }
        }
    }
    assert_eq!(
        failed,
        0,
        "{failed} of {} cases differ; the output lists them",
        cases.len()
    );
}
