//! Keys with which programs act for users. A key is shown once; what is kept of it can only recognize it.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use harness::runtime::runs::store::StoreError;
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// What every key begins with, so that people and scanners know one when they see it.
pub const PREFIX: &str = "dfk_";
/// The characters of a key's id, and of the secret after it: 256 random bits.
const ID_LENGTH: usize = 16;
const SECRET_LENGTH: usize = 64;

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Its id, which is part of it and no secret.
    pub key_id: String,
    /// Who acts with it.
    pub user_id: String,
    /// What its owner calls it.
    pub name: Option<String>,
    /// Whether who acts with it manages the installation.
    pub is_admin: bool,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it ends.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was taken back.
    pub revoked_at: Option<DateTime<Utc>>,
}

impl ApiKey {
    /// Whether it lets anybody in at `at`.
    pub fn is_valid(&self, at: DateTime<Utc>) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| end > at)
    }
}

/// What recognizes a key: its SHA-256. The secret is random, so nothing slower is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyHash(pub String);

impl KeyHash {
    fn of(key: &str) -> Self {
        Self(hex::encode(Sha256::digest(key)))
    }
}

/// A key as its owner gets it, once.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// Its id.
    pub key_id: String,
    /// The whole key.
    pub key: SecretString,
    /// What is kept of it.
    pub hash: KeyHash,
}

impl NewKey {
    /// A key from the operating system's randomness.
    pub fn generate() -> Self {
        let (id, secret): ([u8; ID_LENGTH / 2], [u8; SECRET_LENGTH / 2]) =
            (rand::random(), rand::random());
        let key_id = hex::encode(id);
        let key = format!("{PREFIX}{key_id}_{}", hex::encode(secret));
        Self {
            key_id,
            hash: KeyHash::of(&key),
            key: key.into(),
        }
    }
}

/// The id in what may be a key.
fn id_of(key: &str) -> Option<&str> {
    let (id, secret) = key.strip_prefix(PREFIX)?.split_once('_')?;
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (id.len() == ID_LENGTH && secret.len() == SECRET_LENGTH && is_hex(id) && is_hex(secret))
        .then_some(id)
}

/// Keeps keys.
#[async_trait]
pub trait ApiKeyStore: Send + Sync + std::fmt::Debug {
    /// Keeps a new one.
    async fn create(&self, key: ApiKey, hash: KeyHash) -> Result<(), StoreError>;
    /// One with what recognizes it.
    async fn find(&self, key_id: &str) -> Result<Option<(ApiKey, KeyHash)>, StoreError>;
    /// All, or a user's, in the order in which they were made.
    async fn list(&self, user: Option<&str>) -> Result<Vec<ApiKey>, StoreError>;
    /// Takes one back. `false` when there is none; one that was taken back before stays as it is.
    async fn revoke(&self, key_id: &str, at: DateTime<Utc>) -> Result<bool, StoreError>;
}

/// The key that `sent` is, if it is valid at `at`. What was wrong with it is not told.
pub async fn recognize(
    store: &Arc<dyn ApiKeyStore>,
    sent: &str,
    at: DateTime<Utc>,
) -> Result<Option<ApiKey>, StoreError> {
    let Some(id) = id_of(sent) else {
        return Ok(None);
    };
    let Some((key, kept)) = store.find(id).await? else {
        return Ok(None);
    };
    let is_it: bool = KeyHash::of(sent)
        .0
        .as_bytes()
        .ct_eq(kept.0.as_bytes())
        .into();
    Ok(Some(key).filter(|key| is_it && key.is_valid(at)))
}

/// What a key is for besides acting for its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// Nothing else.
    User,
    /// Managing the installation.
    Admin,
}

/// A new key of `user`, kept in `store`.
pub async fn issue(
    store: &dyn ApiKeyStore,
    user: &str,
    rights: Rights,
    name: Option<String>,
    expires_at: Option<DateTime<Utc>>,
    at: DateTime<Utc>,
) -> Result<(ApiKey, SecretString), StoreError> {
    let NewKey { key_id, key, hash } = NewKey::generate();
    debug_assert!(id_of(key.expose_secret()).is_some());
    let is_admin = rights == Rights::Admin;
    let kept = ApiKey {
        key_id,
        user_id: user.to_owned(),
        name,
        is_admin,
        created_at: at,
        expires_at,
        revoked_at: None,
    };
    store.create(kept.clone(), hash).await?;
    Ok((kept, key))
}

/// Keys that go with the process: for tests and embedders.
#[derive(Debug, Default)]
pub struct MemoryApiKeyStore(Mutex<Vec<(ApiKey, KeyHash)>>);

#[async_trait]
impl ApiKeyStore for MemoryApiKeyStore {
    async fn create(&self, key: ApiKey, hash: KeyHash) -> Result<(), StoreError> {
        self.0.lock().push((key, hash));
        Ok(())
    }

    async fn find(&self, key_id: &str) -> Result<Option<(ApiKey, KeyHash)>, StoreError> {
        Ok(self
            .0
            .lock()
            .iter()
            .find(|(key, _)| key.key_id == key_id)
            .cloned())
    }

    async fn list(&self, user: Option<&str>) -> Result<Vec<ApiKey>, StoreError> {
        let keys = self.0.lock();
        Ok(keys
            .iter()
            .map(|(key, _)| key)
            .filter(|key| user.is_none_or(|user| key.user_id == user))
            .cloned()
            .collect())
    }

    async fn revoke(&self, key_id: &str, at: DateTime<Utc>) -> Result<bool, StoreError> {
        let mut keys = self.0.lock();
        let found = keys
            .iter_mut()
            .map(|(key, _)| key)
            .find(|key| key.key_id == key_id);
        Ok(found.map(|key| key.revoked_at.get_or_insert(at)).is_some())
    }
}

#[cfg(test)]
mod tests {
    use harness::testkit::at;

    use super::*;
    use crate::testkit::api_keys::KeyStores;

    async fn memory() -> KeyStores {
        KeyStores {
            keys: Arc::new(MemoryApiKeyStore::default()),
            keep: Arc::new(()),
        }
    }

    crate::api_key_store_suite!([#[tokio::test]] memory);

    #[tokio::test]
    async fn only_the_whole_key_is_recognized_while_it_is_valid() {
        let store: Arc<dyn ApiKeyStore> = Arc::new(MemoryApiKeyStore::default());
        let (kept, key) = issue(&*store, "ann", Rights::User, None, Some(at(10)), at(0))
            .await
            .unwrap();
        let key = key.expose_secret().to_owned();
        let user = async |sent: &str, n| {
            recognize(&store, sent, at(n))
                .await
                .unwrap()
                .map(|key| key.user_id)
        };
        assert_eq!(user(&key, 9).await.as_deref(), Some("ann"));
        assert_eq!(user(&key, 10).await, None);
        let flipped = format!(
            "{}{}",
            &key[..key.len() - 1],
            if key.ends_with('0') { '1' } else { '0' }
        );
        for wrong in [
            flipped.as_str(),
            &key[1..],
            &key[..key.len() - 1],
            "",
            PREFIX,
            &key.to_uppercase(),
            &format!("{key} "),
        ] {
            assert_eq!(user(wrong, 1).await, None, "{wrong}");
        }
        assert_eq!(store.revoke(&kept.key_id, at(2)).await, Ok(true));
        assert_eq!(user(&key, 3).await, None);
    }

    #[test]
    fn keys_are_never_alike_and_do_not_show_in_logs() {
        let (one, other) = (NewKey::generate(), NewKey::generate());
        assert!(one.key_id != other.key_id && one.hash != other.hash);
        assert!(!format!("{one:?}").contains(one.key.expose_secret()));
        assert_eq!(
            one.key.expose_secret().len(),
            PREFIX.len() + ID_LENGTH + 1 + SECRET_LENGTH
        );
    }
}
