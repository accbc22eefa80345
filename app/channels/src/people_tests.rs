//! Tests of the admission of people.

use std::collections::BTreeSet;

use chrono::DateTime;
use deerflow_domain::channels::ExternalIdentity;
use proptest::prelude::*;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::*;
use crate::config::ConnectionRules;
use crate::platform::{Chat, ChatMessage, Sender};

fn event(kind: ChatKind, chat: &str, sender: &str) -> Event {
    Event {
        id: "1".to_owned(),
        workspace: String::new(),
        chat: Chat {
            id: chat.to_owned(),
            kind,
            parent: None,
        },
        sender: Sender {
            id: sender.to_owned(),
            name: None,
        },
        at: DateTime::UNIX_EPOCH,
        body: EventBody::Message(ChatMessage::default()),
        context: Value::Null,
    }
}

fn connection(user: &str) -> Connection {
    Connection {
        id: Uuid::nil(),
        user_id: user.to_owned(),
        identity: ExternalIdentity {
            provider: "slack".to_owned(),
            account: "U1".to_owned(),
            workspace: String::new(),
        },
        account_name: None,
        workspace_name: None,
        active: true,
        metadata: Map::new(),
        created_at: DateTime::UNIX_EPOCH,
        updated_at: DateTime::UNIX_EPOCH,
    }
}

#[test]
fn lists_and_connections_decide_in_this_order() {
    let mut rules = Rules {
        allowed_users: vec!["U1".to_owned()],
        connections: ConnectionRules {
            enabled: true,
            require_bound_identity: true,
            bot_username: None,
        },
        ..Rules::default()
    };
    let of = |rules: &Rules, sender: &str, connection: Option<&Connection>| {
        admit(
            "slack",
            rules,
            &event(ChatKind::Direct, "D1", sender),
            connection,
        )
    };
    let ann = connection("ann");
    assert!(matches!(
        of(&rules, "U2", Some(&ann)),
        Admission::Ignored(_)
    ));
    assert_eq!(of(&rules, "U1", None), Admission::MustConnect);
    let admitted = Admission::Admitted {
        user_id: "ann".to_owned(),
        connected: true,
    };
    assert_eq!(of(&rules, "U1", Some(&ann)), admitted);
    rules.allowed_guilds = vec!["G1".to_owned()];
    assert!(matches!(
        of(&rules, "U1", Some(&ann)),
        Admission::Ignored(_)
    ));
}

#[test]
fn unaddressed_group_message_is_ignored_if_required() {
    let mut rules = Rules {
        mention_only: true,
        ..Rules::default()
    };
    let group = event(ChatKind::Group, "C1", "U1");
    assert!(is_unaddressed(&rules, &group));
    assert!(!is_unaddressed(
        &rules,
        &event(ChatKind::Direct, "C1", "U1")
    ));
    rules.allowed_channels = vec!["C1".to_owned()];
    assert!(!is_unaddressed(&rules, &group));
    let mut in_thread = event(ChatKind::Group, "T1", "U1");
    in_thread.chat.parent = Some("C1".to_owned());
    assert!(!is_unaddressed(&rules, &in_thread));
}

proptest! {
    #[test]
    fn unconnected_people_have_distinct_safe_ids(ids in proptest::collection::btree_set(any::<String>(), 1..20)) {
        let users: BTreeSet<String> = ids
            .iter()
            .flat_map(|id| {
                [
                    unconnected_user("slack", &event(ChatKind::Direct, "x", id)),
                    unconnected_user("slack", &event(ChatKind::Group, id, "x")),
                ]
            })
            .collect();
        prop_assert_eq!(users.len(), ids.len() * 2);
        for user in users {
            prop_assert!(user.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'));
            prop_assert!(user.len() < 100);
        }
    }
}

#[test]
fn conversation_of_a_user_is_continued_only_by_that_user() {
    let mut rules = Rules::default();
    let may = |rules: &Rules, kind, owner: &str| {
        let event = event(kind, "C1", "U1");
        may_continue("slack", rules, &event, owner)
    };
    let group = user_of_place("slack", "", ChatKind::Group, "C1");
    let direct = user_of_place("slack", "", ChatKind::Direct, "U1");
    for enabled in [false, true] {
        rules.connections.enabled = enabled;
        assert!(may(&rules, ChatKind::Group, &group));
        assert!(!may(&rules, ChatKind::Group, "ann"));
        assert!(!may(&rules, ChatKind::Group, "U1"));
        for owner in [&group, &direct, "U1"] {
            assert!(may(&rules, ChatKind::Direct, owner), "{owner}");
        }
        assert_eq!(may(&rules, ChatKind::Direct, "ann"), !enabled);
    }
}
