//! Generated attempts of strangers: none has a forbidden effect.
//!
//! `STRANGER_CASES` raises the number of cases.

mod codes;
mod lists;
mod presses;

use serde_json::json;

use super::rig::{Rig, config};

/// Result of a case: the forbidden effect, if there was one.
type Verdict = Result<(), String>;

/// Number of kinds of cases of each configuration.
const KINDS: u64 = 18;

/// Returns an error with a description unless a condition holds.
fn expect(holds: bool, what: impl Into<String>) -> Verdict {
    if holds { Ok(()) } else { Err(what.into()) }
}

fn cases() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no configuration object"
    )]
    let count = std::env::var("STRANGER_CASES");
    count
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(KINDS * 2)
}

#[tokio::test]
async fn no_attempt_of_a_stranger_has_an_effect() {
    let connections = json!({"enabled": true, "memory": {"enabled": true}});
    let bound = Rig::with(config(json!({}), connections)).await;
    let open = Rig::start().await;
    let rules = json!({"allowed_users": ["ann"], "allowed_guilds": ["W1"]});
    let listed = Rig::with(config(rules, json!({}))).await;
    let mut effects = Vec::new();
    let count = cases();
    for case in 0..count {
        let (kind, variant) = (case % KINDS, case / KINDS);
        let verdict = match kind {
            0..6 => codes::run(&bound, case, kind, variant).await,
            6..12 => presses::run(&open, case, kind - 6, variant).await,
            _ => lists::run(&listed, case, kind - 12, variant).await,
        };
        if let Err(effect) = verdict {
            effects.push(format!("case {case} of kind {kind}: {effect}"));
        }
    }
    assert!(
        effects.is_empty(),
        "{} of {count} cases have a forbidden effect: {effects:#?}",
        effects.len()
    );
}
