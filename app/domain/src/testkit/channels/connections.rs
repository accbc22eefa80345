//! Requirements of connections and codes.

use chrono::{DateTime, Utc};
use deerflow_runtime::testkit::{USER, at, at_once};
use serde_json::Map;

use super::ChannelSuite;
use crate::channels::{
    ChannelStores, Connection, ConsumedCode, ExternalIdentity, MAX_PENDING_CODES, NewCode,
    PendingCode,
};
use crate::testkit::accounts::set_disabled;

fn code(hash: &str, user: &str) -> NewCode {
    NewCode {
        hash: hash.to_owned(),
        user_id: user.to_owned(),
        provider: "telegram".to_owned(),
        expires_at: at(600),
    }
}

fn person(account: &str) -> ExternalIdentity {
    ExternalIdentity {
        provider: "telegram".to_owned(),
        account: account.to_owned(),
        workspace: String::new(),
    }
}

async fn create(stores: &ChannelStores, code: NewCode, at: DateTime<Utc>) -> PendingCode {
    let created = stores.connections.create_code(code, at).await;
    created.expect("written")
}

async fn consume(
    stores: &ChannelStores,
    hash: &str,
    identity: &ExternalIdentity,
    n: i64,
) -> ConsumedCode {
    let names = (Some(format!("name {n}")), None);
    let consumed = stores
        .connections
        .consume_code(hash, identity, names, at(n))
        .await;
    consumed.expect("written")
}

/// Connects an identity to a user with a new code.
async fn connect(
    stores: &ChannelStores,
    user: &str,
    identity: &ExternalIdentity,
    n: i64,
) -> Connection {
    let hash = format!("{user}-{n}");
    create(stores, code(&hash, user), at(n)).await;
    match consume(stores, &hash, identity, n).await {
        ConsumedCode::Connected(connection) => *connection,
        ConsumedCode::Invalid => panic!("refused"),
    }
}

async fn list(stores: &ChannelStores, user: &str) -> Vec<Connection> {
    stores.connections.list(user).await.expect("read")
}

async fn active(stores: &ChannelStores, identity: &ExternalIdentity) -> Option<Connection> {
    let found = stores.connections.find_active(identity).await;
    found.expect("read")
}

/// Other users, other platforms, and expired or used codes do not count.
pub async fn codes_are_limited_per_user_and_platform(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let stores = &suite.stores;
    for n in 0..MAX_PENDING_CODES {
        let created = create(stores, code(&format!("h{n}"), USER), at(0)).await;
        assert_eq!(created, PendingCode::Created);
    }
    let too_many = create(stores, code("more", USER), at(1)).await;
    assert_eq!(too_many, PendingCode::TooMany);
    let refused = consume(stores, "more", &person("u1"), 2).await;
    assert_eq!(refused, ConsumedCode::Invalid);
    let other_user = create(stores, code("bob", "bob"), at(1)).await;
    assert_eq!(other_user, PendingCode::Created);
    let slack = NewCode {
        provider: "slack".to_owned(),
        ..code("slack", USER)
    };
    assert_eq!(create(stores, slack, at(1)).await, PendingCode::Created);
    let used = consume(stores, "h0", &person("u1"), 2).await;
    assert!(matches!(used, ConsumedCode::Connected(_)), "{used:?}");
    let freed = create(stores, code("h9", USER), at(3)).await;
    assert_eq!(freed, PendingCode::Created);
    let full = create(stores, code("more", USER), at(4)).await;
    assert_eq!(full, PendingCode::TooMany);
    let later = NewCode {
        expires_at: at(1200),
        ..code("more", USER)
    };
    assert_eq!(create(stores, later, at(600)).await, PendingCode::Created);
}

/// Concurrent requests of one user stay within the limit.
pub async fn concurrent_codes_do_not_exceed_limit(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let results = at_once((0..12).map(|n| {
        let suite = suite.clone();
        async move { create(&suite.stores, code(&format!("h{n}"), USER), at(0)).await }
    }))
    .await;
    let created = results
        .iter()
        .filter(|result| **result == PendingCode::Created);
    assert_eq!(created.count(), MAX_PENDING_CODES);
}

/// A code for another platform stays valid there.
pub async fn code_is_refused_when_unknown_expired_used_or_misplaced(
    open: impl AsyncFn() -> ChannelSuite,
) {
    let suite = open().await;
    let stores = &suite.stores;
    create(stores, code("h1", USER), at(0)).await;
    create(stores, code("h2", USER), at(0)).await;
    let slack = ExternalIdentity {
        provider: "slack".to_owned(),
        ..person("u1")
    };
    let refused = ConsumedCode::Invalid;
    assert_eq!(consume(stores, "h0", &person("u1"), 1).await, refused);
    assert_eq!(consume(stores, "h1", &slack, 1).await, refused);
    assert_eq!(consume(stores, "h2", &person("u1"), 600).await, refused);
    assert_eq!(list(stores, USER).await, []);
    let connected = consume(stores, "h1", &person("u1"), 599).await;
    assert!(matches!(connected, ConsumedCode::Connected(_)));
    assert_eq!(consume(stores, "h1", &person("u2"), 599).await, refused);
    assert_eq!(list(stores, USER).await.len(), 1);
}

/// Of persons who send one code at once, one is connected.
pub async fn code_is_used_by_one_of_many(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    create(&suite.stores, code("h1", USER), at(0)).await;
    let results = at_once((0..8).map(|n| {
        let suite = suite.clone();
        async move { consume(&suite.stores, "h1", &person(&format!("u{n}")), 1).await }
    }))
    .await;
    let connected = results
        .iter()
        .filter(|result| matches!(result, ConsumedCode::Connected(_)));
    assert_eq!(connected.count(), 1, "{results:?}");
    assert_eq!(list(&suite.stores, USER).await.len(), 1);
}

/// The last owner of an identity is the active one. An earlier connection is activated again with
/// its id and time of creation.
pub async fn connection_moves_to_last_owner_and_returns(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let stores = &suite.stores;
    let identity = person("u1");
    let of_ann = connect(stores, USER, &identity, 1).await;
    let expected = Connection {
        id: identity.connection_id(USER),
        user_id: USER.to_owned(),
        identity: identity.clone(),
        account_name: Some("name 1".to_owned()),
        workspace_name: None,
        active: true,
        metadata: Map::new(),
        created_at: at(1),
        updated_at: at(1),
    };
    assert_eq!(of_ann, expected);
    assert_eq!(active(stores, &identity).await, Some(of_ann.clone()));
    let of_bob = connect(stores, "bob", &identity, 2).await;
    assert_eq!(active(stores, &identity).await, Some(of_bob.clone()));
    let inactive = Connection {
        active: false,
        updated_at: at(2),
        ..of_ann.clone()
    };
    assert_eq!(list(stores, USER).await, [inactive]);
    let again = connect(stores, USER, &identity, 3).await;
    let expected = Connection {
        account_name: Some("name 3".to_owned()),
        updated_at: at(3),
        ..of_ann
    };
    assert_eq!(again, expected);
    assert_eq!(active(stores, &identity).await, Some(again.clone()));
    let second = connect(stores, USER, &person("u2"), 4).await;
    assert_eq!(list(stores, USER).await, [second, again]);
    assert_eq!(active(stores, &person("u3")).await, None);
    let in_workspace = ExternalIdentity {
        workspace: "w".to_owned(),
        ..identity
    };
    assert_eq!(active(stores, &in_workspace).await, None);
}

/// Of owners who connect one identity at once, one is active.
pub async fn owners_racing_for_identity_leave_one_active(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let users: Vec<String> = (0..8).map(|n| format!("user{n}")).collect();
    let connected = at_once(users.clone().into_iter().map(|user| {
        let suite = suite.clone();
        async move { connect(&suite.stores, &user, &person("u1"), 1).await }
    }))
    .await;
    assert_eq!(connected.len(), 8);
    let mut owners = Vec::new();
    for user in &users {
        let of_user = list(&suite.stores, user).await;
        owners.extend(of_user.into_iter().filter(|connection| connection.active));
    }
    assert_eq!(owners.len(), 1, "{owners:?}");
    assert_eq!(active(&suite.stores, &person("u1")).await, owners.pop());
}

/// Only the owner disconnects, once.
pub async fn connection_is_disconnected_by_owner_only(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let stores = &suite.stores;
    let connection = connect(stores, USER, &person("u1"), 1).await;
    let disconnect = async |user| {
        let disconnected = stores.connections.disconnect(user, connection.id, at(9));
        disconnected.await.expect("written")
    };
    assert!(!disconnect("bob").await);
    assert_eq!(
        active(stores, &person("u1")).await,
        Some(connection.clone())
    );
    assert!(disconnect(USER).await);
    assert!(!disconnect(USER).await);
    assert_eq!(active(stores, &person("u1")).await, None);
    let inactive = Connection {
        active: false,
        updated_at: at(9),
        ..connection.clone()
    };
    assert_eq!(list(stores, USER).await, [inactive]);
    let again = connect(stores, USER, &person("u1"), 10).await;
    assert_eq!((again.id, again.active), (connection.id, true));
}

/// Disconnecting a platform concerns all users and no other platform.
pub async fn platform_is_disconnected_for_all_users(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let stores = &suite.stores;
    connect(stores, USER, &person("u1"), 1).await;
    connect(stores, "bob", &person("u2"), 2).await;
    let disconnect = async |platform| {
        let disconnected = stores.connections.disconnect_all(platform, at(9));
        disconnected.await.expect("written")
    };
    assert_eq!(disconnect("slack").await, 0);
    assert!(active(stores, &person("u1")).await.is_some());
    assert_eq!(disconnect("telegram").await, 2);
    assert_eq!(disconnect("telegram").await, 0);
    for (user, identity) in [(USER, "u1"), ("bob", "u2")] {
        assert_eq!(active(stores, &person(identity)).await, None);
        assert_eq!(list(stores, user).await[0].updated_at, at(9));
    }
}

/// A connection stays active while the account of its user is disabled, and is suspended.
pub async fn connection_of_disabled_account_is_suspended(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let connections = &suite.stores.connections;
    assert_eq!(connections.is_suspended(USER).await, Ok(false));
    let Some(accounts) = &suite.accounts else {
        return;
    };
    for disabled in [true, false] {
        set_disabled(&**accounts, USER, disabled).await;
        assert_eq!(connections.is_suspended(USER).await, Ok(disabled));
    }
}
