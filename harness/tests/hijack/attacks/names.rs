//! Tools that are forbidden, by their own names and by others.

use deerflow_harness::testkit::chance::Chance;
use serde_json::json;

use super::forbidden as forbidden_call;
use crate::attempt::{Attempt, Case, Fate};
use crate::disguises::{self, word};
use crate::house::SCOUT;

/// One to three answers with a forbidden call each, by an agent that may be one of the user's own or one that makes such.
pub(super) fn forbidden(chance: &Chance) -> Case {
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

/// Names that might be taken for those of tools.
pub(super) fn disguised(chance: &Chance) -> Case {
    let calls = (0..=chance.below(3)).map(|_| {
        let name = disguises::name(
            chance,
            word(
                chance,
                &["pay", "send_message", "bash", "remote_wipe", "update_agent"],
            ),
        );
        vec![Attempt::new(
            Fate::Denied,
            name,
            &json!({"what": "everything", "command": "id"}),
        )]
    });
    Case::new(calls.collect())
}

/// Tools that have to be looked for: without looking, looking for something else, and forbidden ones after looking.
pub(super) fn unloaded(chance: &Chance) -> Case {
    let call = |fate, name: &str| vec![Attempt::new(fate, name, &json!({"what": "everything"}))];
    let search = |query: &str| {
        vec![Attempt::new(
            Fate::Open,
            "tool_search",
            &json!({ "query": query }),
        )]
    };
    let look = || call(Fate::Open, "remote_look");
    let wipe = || call(Fate::Denied, "remote_wipe");
    let lead = match chance.below(5) {
        0 => vec![look(), wipe()],
        1 => vec![search("select:remote_wipe"), wipe(), look()],
        2 => vec![search("select:pay,bash"), look()],
        3 => vec![[search("select:remote_wipe"), wipe(), look()].concat()],
        _ => vec![
            search("nothing of that name"),
            look(),
            call(Fate::Denied, &disguises::name(chance, "remote_look")),
        ],
    };
    Case::new(lead)
}
