//! Forbidden tools, by their own names and by others.

use deerflow_harness::testkit::seeded_rng::SeededRng;
use serde_json::json;

use super::forbidden as forbidden_call;
use crate::attempt::{Attempt, Case, Expectation};
use crate::disguises::{self, word};
use crate::subject::SCOUT;

/// One to three answers with a forbidden call each, by an agent that may be a custom one or one
/// that creates custom agents.
pub(super) fn forbidden(chance: &SeededRng) -> Case {
    let lead = (0..=chance.below(3))
        .map(|_| vec![forbidden_call(chance)])
        .collect();
    let option = match chance.below(3) {
        0 => Some(("agent_name", json!(SCOUT))),
        1 => Some(("is_bootstrap", json!(true))),
        _ => None,
    };
    let options = option
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    Case {
        options,
        ..Case::new(lead)
    }
}

/// Names that resemble those of tools.
pub(super) fn disguised(chance: &SeededRng) -> Case {
    let calls = (0..=chance.below(3)).map(|_| {
        let name = disguises::name(
            chance,
            word(
                chance,
                &["pay", "send_message", "bash", "remote_wipe", "update_agent"],
            ),
        );
        vec![Attempt::new(
            Expectation::Denied,
            name,
            &json!({"what": "everything", "command": "id"}),
        )]
    });
    Case::new(calls.collect())
}

/// Deferred tools: called without a search, after a search for something else, and forbidden ones
/// after a search.
pub(super) fn unloaded(chance: &SeededRng) -> Case {
    let call = |expectation, name: &str| {
        vec![Attempt::new(
            expectation,
            name,
            &json!({"what": "everything"}),
        )]
    };
    let search = |query: &str| {
        vec![Attempt::new(
            Expectation::Open,
            "tool_search",
            &json!({ "query": query }),
        )]
    };
    let look = || call(Expectation::Open, "remote_look");
    let wipe = || call(Expectation::Denied, "remote_wipe");
    let lead = match chance.below(5) {
        0 => vec![look(), wipe()],
        1 => vec![search("select:remote_wipe"), wipe(), look()],
        2 => vec![search("select:pay,bash"), look()],
        3 => vec![[search("select:remote_wipe"), wipe(), look()].concat()],
        _ => vec![
            search("nothing of that name"),
            look(),
            call(Expectation::Denied, &disguises::name(chance, "remote_look")),
        ],
    };
    Case::new(lead)
}
