//! Contract suite of API key stores.

use std::sync::Arc;

use deerflow_runtime::testkit::{Keep, at};

use crate::accounts::{AuditAction, NewAuditEntry};
use crate::api_keys::{ApiKey, ApiKeyStore, KeyHash};

/// Generates one test per requirement of API key stores.
#[macro_export]
macro_rules! api_key_store_suite {
    ($attrs:tt $open:expr) => {
        deerflow_runtime::promises! { $attrs $open, [$crate::testkit::api_keys]
            created_key_is_returned_unchanged
            keys_are_listed_in_creation_order
            key_is_revoked_once
        }
    };
}

/// API key store, opened fresh for each test.
#[derive(Debug, Clone)]
pub struct KeyStores {
    /// Store under test.
    pub keys: Arc<dyn ApiKeyStore>,
    /// Resources that must live as long as the store.
    pub keep: Arc<dyn Keep>,
}

fn key(n: i64, user: &str) -> ApiKey {
    let (key_id, user_id) = (format!("{n:016}"), user.to_owned());
    ApiKey {
        key_id,
        user_id,
        name: None,
        is_admin: false,
        created_at: at(n),
        expires_at: None,
        revoked_at: None,
    }
}

fn entry(action: AuditAction, n: i64) -> NewAuditEntry {
    NewAuditEntry::new(action, at(n))
}

async fn create(stores: &KeyStores, key: ApiKey) {
    stores
        .keys
        .create(
            key,
            KeyHash("h".to_owned()),
            entry(AuditAction::KeyCreated, 0),
        )
        .await
        .expect("written");
}

/// All fields are returned unchanged.
pub async fn created_key_is_returned_unchanged(open: impl AsyncFn() -> KeyStores) {
    let stores = open().await;
    let full = ApiKey {
        name: Some("ci ü".to_owned()),
        is_admin: true,
        expires_at: Some(at(9)),
        ..key(1, "ann")
    };
    create(&stores, full.clone()).await;
    assert_eq!(
        stores.keys.find(&full.key_id).await,
        Ok(Some((full, KeyHash("h".to_owned()))))
    );
    assert_eq!(stores.keys.find("0").await, Ok(None));
}

/// Lists all keys, or those of one user.
pub async fn keys_are_listed_in_creation_order(open: impl AsyncFn() -> KeyStores) {
    let stores = open().await;
    for (n, user) in [(2, "ann"), (1, "bob"), (3, "ann")] {
        create(&stores, key(n, user)).await;
    }
    assert_eq!(
        stores.keys.list(Some("ann")).await,
        Ok(vec![key(2, "ann"), key(3, "ann")])
    );
    assert_eq!(stores.keys.list(None).await.map(|keys| keys.len()), Ok(3));
    assert_eq!(stores.keys.list(Some("eve")).await, Ok(vec![]));
}

/// A revoked key stays in the list.
pub async fn key_is_revoked_once(open: impl AsyncFn() -> KeyStores) {
    let stores = open().await;
    create(&stores, key(1, "ann")).await;
    let revoke = async |id: &str, n| {
        let entry = entry(AuditAction::KeyRevoked, n);
        stores.keys.revoke(id, entry).await
    };
    assert_eq!(revoke("0", 5).await, Ok(false));
    for n in [5, 6] {
        assert_eq!(revoke(&key(1, "ann").key_id, n).await, Ok(true));
    }
    assert_eq!(
        stores.keys.list(None).await,
        Ok(vec![ApiKey {
            revoked_at: Some(at(5)),
            ..key(1, "ann")
        }])
    );
}
