//! API keys with which programs act for users. A key is shown once; only its hash is stored.

mod in_memory;

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_runtime::runs::store::StoreError;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::accounts::{AuditAction, NewAuditEntry};

pub use in_memory::InMemoryApiKeyStore;

/// Prefix of every key, by which people and secret scanners recognise one.
pub const PREFIX: &str = "dfk_";
/// Lengths of a key's id and of its secret, in hexadecimal characters; the secret has 256 random
/// bits.
const ID_LENGTH: usize = 16;
const SECRET_LENGTH: usize = 64;

/// Stored record of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Public id, which is part of the key.
    pub key_id: String,
    /// User that requests with this key act as.
    pub user_id: String,
    /// Name given by the owner.
    pub name: Option<String>,
    /// `true` if requests with this key may administer the installation.
    pub is_admin: bool,
    /// Creation time.
    pub created_at: DateTime<Utc>,
    /// Expiry time; `None` means never.
    pub expires_at: Option<DateTime<Utc>>,
    /// Revocation time.
    pub revoked_at: Option<DateTime<Utc>>,
}

impl ApiKey {
    /// Reports whether the key is neither revoked nor expired at `at`.
    pub fn is_valid(&self, at: DateTime<Utc>) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| end > at)
    }
}

/// SHA-256 of a key. A slow hash is not needed, because the secret is random.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyHash(pub String);

impl KeyHash {
    fn of(key: &str) -> Self {
        Self(hex::encode(Sha256::digest(key)))
    }
}

/// Newly generated key, which only its creator ever sees in full.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// Id.
    pub key_id: String,
    /// Complete key.
    pub key: SecretString,
    /// Hash to store.
    pub hash: KeyHash,
}

impl NewKey {
    /// Generates a key from the operating system's random source.
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

/// Returns the id part if `key` has the format of a key.
fn id_of(key: &str) -> Option<&str> {
    let (id, secret) = key.strip_prefix(PREFIX)?.split_once('_')?;
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (id.len() == ID_LENGTH && secret.len() == SECRET_LENGTH && is_hex(id) && is_hex(secret))
        .then_some(id)
}

/// Maximum number of live keys that a user makes.
pub const MAX_KEYS_PER_USER: u64 = 50;

/// Result of storing a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyCreation {
    /// Stored.
    Created,
    /// The user has the maximum number of live keys.
    TooMany,
    /// The account of the user is disabled or was deleted.
    NoAccount,
}

/// Stores API keys. A key of a disabled account is not found while it is disabled; the deletion of
/// an account revokes its keys.
#[async_trait]
pub trait ApiKeyStore: Send + Sync + std::fmt::Debug {
    /// Stores a new key, and writes the entry in the same transaction.
    async fn create(
        &self,
        key: ApiKey,
        hash: KeyHash,
        entry: NewAuditEntry,
    ) -> Result<(), StoreError>;
    /// Stores a key that its user makes: an enabled account has to exist, and it has fewer than
    /// `maximum` live keys at `at`, revoked and expired ones not counted. Writes the entry in the
    /// same transaction.
    async fn create_own(
        &self,
        key: ApiKey,
        hash: KeyHash,
        maximum: u64,
        entry: NewAuditEntry,
    ) -> Result<KeyCreation, StoreError>;
    /// Returns a key with its hash, unless the account of its user is disabled. A
    /// user without an account is a program's, and its keys are found. A key of an account that is
    /// no administrator has no rights of one.
    async fn find(&self, key_id: &str) -> Result<Option<(ApiKey, KeyHash)>, StoreError>;
    /// Returns all keys, or those of one user, in order of creation.
    async fn list(&self, user: Option<&str>) -> Result<Vec<ApiKey>, StoreError>;
    /// Revokes a key and writes the entry. Returns `false`, without an entry, if it does not exist;
    /// an earlier revocation keeps its time.
    async fn revoke(&self, key_id: &str, entry: NewAuditEntry) -> Result<bool, StoreError>;
    /// Revokes a live key of a user and writes the entry; `false`, without an entry, if the user has
    /// no such key.
    async fn revoke_own(
        &self,
        user: &str,
        key_id: &str,
        entry: NewAuditEntry,
    ) -> Result<bool, StoreError>;
    /// Revokes all live keys of a user; returns their number.
    async fn revoke_all(&self, user: &str, at: DateTime<Utc>) -> Result<u64, StoreError>;
}

/// Returns the record of the key `sent` if it is valid at `at`. Does not reveal why a key is
/// invalid.
pub async fn find_valid_key(
    store: &Arc<dyn ApiKeyStore>,
    sent: &str,
    at: DateTime<Utc>,
) -> Result<Option<ApiKey>, StoreError> {
    let Some(id) = id_of(sent) else {
        return Ok(None);
    };
    let Some((key, stored)) = store.find(id).await? else {
        return Ok(None);
    };
    let matches: bool = KeyHash::of(sent)
        .0
        .as_bytes()
        .ct_eq(stored.0.as_bytes())
        .into();
    Ok(Some(key).filter(|key| matches && key.is_valid(at)))
}

/// Rights of a key beyond acting for its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// No further rights.
    User,
    /// Administration of the installation.
    Admin,
}

/// Generates a key of `user`, its record, and the hash to store.
pub fn new_key(
    user: &str,
    rights: Rights,
    name: Option<String>,
    expires_at: Option<DateTime<Utc>>,
    at: DateTime<Utc>,
) -> (ApiKey, NewKey) {
    let new = NewKey::generate();
    debug_assert!(id_of(new.key.expose_secret()).is_some());
    let stored = ApiKey {
        key_id: new.key_id.clone(),
        user_id: user.to_owned(),
        name,
        is_admin: rights == Rights::Admin,
        created_at: at,
        expires_at,
        revoked_at: None,
    };
    (stored, new)
}

/// Creates a key for `user` on behalf of an operator, and stores its hash.
pub async fn issue(
    store: &dyn ApiKeyStore,
    user: &str,
    rights: Rights,
    name: Option<String>,
    expires_at: Option<DateTime<Utc>>,
    at: DateTime<Utc>,
) -> Result<(ApiKey, SecretString), StoreError> {
    let (stored, NewKey { key, hash, .. }) = new_key(user, rights, name, expires_at, at);
    let entry = NewAuditEntry::new(AuditAction::KeyCreated, at).on(&*stored.key_id);
    store.create(stored.clone(), hash, entry).await?;
    Ok((stored, key))
}

#[cfg(test)]
mod tests {
    use deerflow_runtime::testkit::at;

    use super::*;
    use crate::testkit::api_keys::KeyStores;

    async fn memory() -> KeyStores {
        KeyStores {
            keys: Arc::new(InMemoryApiKeyStore::default()),
            keep: Arc::new(()),
        }
    }

    crate::api_key_store_suite!([#[tokio::test]] memory);

    #[tokio::test]
    async fn only_complete_valid_key_is_accepted() {
        let store: Arc<dyn ApiKeyStore> = Arc::new(InMemoryApiKeyStore::default());
        let (stored, key) = issue(&*store, "ann", Rights::User, None, Some(at(10)), at(0))
            .await
            .unwrap();
        let key = key.expose_secret().to_owned();
        let user = async |sent: &str, n| {
            find_valid_key(&store, sent, at(n))
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
        let entry = NewAuditEntry::new(AuditAction::KeyRevoked, at(2));
        assert_eq!(store.revoke(&stored.key_id, entry).await, Ok(true));
        assert_eq!(user(&key, 3).await, None);
    }

    #[test]
    fn keys_are_unique_and_redacted_in_logs() {
        let (one, other) = (NewKey::generate(), NewKey::generate());
        assert!(one.key_id != other.key_id && one.hash != other.hash);
        assert!(!format!("{one:?}").contains(one.key.expose_secret()));
        assert_eq!(
            one.key.expose_secret().len(),
            PREFIX.len() + ID_LENGTH + 1 + SECRET_LENGTH
        );
    }
}
