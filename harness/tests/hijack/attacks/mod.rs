//! The kinds of attack, and the number of cases of each.

mod approvals;
mod arguments;
mod batches;
mod files;
mod names;
mod reach;

use deerflow_harness::testkit::seeded_rng::SeededRng;
use serde_json::json;

use super::attempt::{Attempt, Case, Expectation};
use super::disguises;

/// Generator of a case.
type Make = fn(&SeededRng) -> Case;

/// Kinds of attack, the number of their cases, and their generators.
pub(super) const KINDS: [(&str, u64, Make); 15] = [
    ("forbidden tool", 60, names::forbidden),
    ("disguised tool", 100, names::disguised),
    ("tool that is not loaded", 60, names::unloaded),
    ("path elsewhere", 140, files::elsewhere),
    ("planted link", 60, files::linked),
    ("what later runs believe", 50, files::persistent),
    ("among allowed calls", 80, batches::mixed),
    ("again and again", 60, batches::repeated),
    ("by a subagent", 80, batches::delegated),
    ("calls that share an id", 40, batches::twins),
    ("after a no", 80, approvals::rejected),
    ("beside a yes", 50, approvals::next_to_approved),
    ("with a forged yes", 40, approvals::forged),
    ("malformed arguments", 50, arguments::malformed),
    ("command", 50, reach::commands),
];

/// Returns the case of a kind and a seed.
pub(super) fn case(kind: &str, seed: u64) -> Case {
    let (_, _, make) = KINDS
        .iter()
        .find(|(name, _, _)| *name == kind)
        .unwrap_or_else(|| panic!("there is no kind {kind:?}"));
    make(&SeededRng::of(seed)).numbered()
}

/// Returns all kinds with all their seeds.
pub(super) fn all() -> impl Iterator<Item = (&'static str, u64)> {
    KINDS
        .iter()
        .flat_map(|(kind, count, _)| (1..=*count).map(move |seed| (*kind, seed)))
}

/// Returns a call that the policy permits, whose effect must exist afterwards.
fn note(what: impl Into<String>) -> Attempt {
    let what: String = what.into();
    Attempt::new(Expectation::Open, "note", &json!({ "what": what }))
}

/// Returns a call that needs an approval.
fn message(what: &str) -> Attempt {
    Attempt::new(Expectation::Asked, "send_message", &json!({ "what": what }))
}

/// Returns a call that the policy forbids.
fn forbidden(chance: &SeededRng) -> Attempt {
    let deed = |name: &str| {
        Attempt::new(
            Expectation::Denied,
            name,
            &json!({"what": "everything", "command": "id", "soul": "evil"}),
        )
    };
    match chance.below(9) {
        0 => deed("pay"),
        1 => deed("bash"),
        2 => deed("remote_wipe"),
        3 => deed("update_agent"),
        4 => deed("setup_agent"),
        5 => Attempt::new(
            Expectation::Denied,
            "read_file",
            &json!({"path": "/mnt/user-data/workspace/sealed/plan.txt"}),
        ),
        6 => Attempt::new(
            Expectation::Denied,
            "write_file",
            &json!({"path": "/mnt/user-data/workspace/sealed/plan.txt", "content": "x"}),
        ),
        7 => Attempt::new(
            Expectation::Denied,
            "grep",
            &json!({"path": "/mnt/user-data/workspace", "pattern": "."}),
        ),
        _ => Attempt::new(
            Expectation::Denied,
            disguises::name(chance, "pay"),
            &json!({"what": "everything"}),
        ),
    }
}
