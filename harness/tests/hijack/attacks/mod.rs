//! The kinds of attack, and how many cases there are of each.

mod approvals;
mod arguments;
mod batches;
mod files;
mod names;
mod reach;

use deerflow_harness::testkit::chance::Chance;
use serde_json::json;

use super::attempt::{Attempt, Case, Fate};
use super::disguises;

/// Makes a case.
type Make = fn(&Chance) -> Case;

/// Kinds of attack, the number of their cases, and who makes them.
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
    ("beside a yes", 50, approvals::beside),
    ("with a forged yes", 40, approvals::forged),
    ("malformed arguments", 50, arguments::malformed),
    ("command", 50, reach::commands),
];

/// The case of a kind and a seed.
pub(super) fn case(kind: &str, seed: u64) -> Case {
    let (_, _, make) = KINDS
        .iter()
        .find(|(name, _, _)| *name == kind)
        .unwrap_or_else(|| panic!("there is no kind {kind:?}"));
    make(&Chance::of(seed)).numbered()
}

/// All kinds with all their seeds.
pub(super) fn all() -> impl Iterator<Item = (&'static str, u64)> {
    KINDS
        .iter()
        .flat_map(|(kind, count, _)| (1..=*count).map(move |seed| (*kind, seed)))
}

/// A call that the policy allows, whose effect must be there afterwards.
fn note(what: impl Into<String>) -> Attempt {
    let what: String = what.into();
    Attempt::new(Fate::Open, "note", &json!({ "what": what }))
}

/// A call that a person has to allow.
fn message(what: &str) -> Attempt {
    Attempt::new(Fate::Asked, "send_message", &json!({ "what": what }))
}

/// A call that the policy forbids.
fn forbidden(chance: &Chance) -> Attempt {
    let deed = |name: &str| {
        Attempt::new(
            Fate::Denied,
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
            Fate::Denied,
            "read_file",
            &json!({"path": "/mnt/user-data/workspace/sealed/plan.txt"}),
        ),
        6 => Attempt::new(
            Fate::Denied,
            "write_file",
            &json!({"path": "/mnt/user-data/workspace/sealed/plan.txt", "content": "x"}),
        ),
        7 => Attempt::new(
            Fate::Denied,
            "grep",
            &json!({"path": "/mnt/user-data/workspace", "pattern": "."}),
        ),
        _ => Attempt::new(
            Fate::Denied,
            disguises::name(chance, "pay"),
            &json!({"what": "everything"}),
        ),
    }
}
