//! Parses and validates configurations: any YAML is accepted or rejected without a panic.
#![no_main]

use harness::config::AppConfig;
use harness::models::ModelEntry;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &str| {
    let Ok(value) = serde_saphyr::from_str::<Value>(text) else { return };
    let Ok(config) = serde_json::from_value::<AppConfig>(value) else { return };
    let _violations = config.violations();
    for model in &config.models {
        let _entry = ModelEntry::from(model);
    }
});
