//! API keys of an entry, which are tried one after another, and the credentials file that replaces
//! them.

use std::sync::atomic::{AtomicUsize, Ordering};

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::sign_in_file::SignInFile;
use crate::ModelEntry;

/// Minimum length of a secret, in bytes. Shorter keys are placeholders for servers that need none.
const MIN_SECRET_BYTES: usize = 8;

/// Keys of one entry.
#[derive(Debug)]
pub(crate) struct Credentials {
    keys: Vec<SecretString>,
    /// Index of the key in use. It changes when the provider rejects the key.
    current: AtomicUsize,
    file: Option<SignInFile>,
}

/// Credential of one call.
#[derive(Debug, Clone)]
pub(crate) struct Credential {
    secret: SecretString,
    /// Account that a credentials file names.
    pub(crate) account: Option<String>,
    /// `true` if it is an API key that a credentials file contains instead of a user's token.
    pub(crate) is_stored_key: bool,
    index: usize,
}

impl Credential {
    /// Returns the secret.
    pub(crate) fn text(&self) -> &str {
        self.secret.expose_secret().trim()
    }

    /// Returns `text` without the secret, in case a server repeats it.
    pub(crate) fn redact(&self, text: &str) -> String {
        let key = self.text();
        if key.len() < MIN_SECRET_BYTES {
            text.to_owned()
        } else {
            text.replace(key, "***")
        }
    }

    #[cfg(test)]
    pub(crate) fn of(key: &str) -> Self {
        Self::key(SecretString::from(key), 0)
    }

    /// Creates the credential for an entry's key at `index`.
    fn key(secret: SecretString, index: usize) -> Self {
        Self {
            secret,
            account: None,
            is_stored_key: false,
            index,
        }
    }
}

impl Credentials {
    /// Reads the keys of `entry`: its `api_key` under any of `names`, then its `api_keys`, then its
    /// `credentials_path`.
    pub(crate) fn read(entry: &ModelEntry, names: &[&str]) -> Self {
        let text = |key: &str| {
            entry
                .extra
                .get(key)?
                .as_str()
                .filter(|text| !text.trim().is_empty())
        };
        let written = names
            .iter()
            .find_map(|name| text(name))
            .map(SecretString::from);
        let several = entry
            .extra
            .get("api_keys")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let several = several
            .filter_map(Value::as_str)
            .filter(|key| !key.trim().is_empty())
            .map(SecretString::from);
        let keys = entry
            .api_key
            .clone()
            .or(written)
            .into_iter()
            .chain(several)
            .collect();
        Self {
            keys,
            current: AtomicUsize::new(0),
            file: SignInFile::of(entry),
        }
    }

    /// Reports whether there is neither a key nor a credentials file.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.file.is_none()
    }

    /// Returns the number of keys that can be tried, at least 1.
    pub(crate) fn len(&self) -> usize {
        self.keys.len().max(1)
    }

    /// Returns all keys.
    pub(crate) fn all(&self) -> impl Iterator<Item = Credential> {
        self.keys
            .iter()
            .enumerate()
            .map(|(index, secret)| Credential::key(secret.clone(), index))
    }

    /// Returns the credential of the next call. The error states what is wrong with the file.
    pub(crate) fn current(&self) -> Result<Option<Credential>, String> {
        if self.keys.is_empty() {
            return self.read_file();
        }
        let index = self.current.load(Ordering::Relaxed) % self.keys.len();
        Ok(Some(Credential::key(self.keys[index].clone(), index)))
    }

    /// Switches to the key after `refused`, unless another call has already switched.
    pub(crate) fn rotate_from(&self, refused: &Credential) {
        let next = (refused.index + 1) % self.len();
        let _moved = self.current.compare_exchange(
            refused.index,
            next,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// Returns the credential in the file if it differs from the rejected one: its program has
    /// renewed the token.
    pub(crate) fn renewed(&self, refused: &Credential) -> Option<Credential> {
        let current_secret = self.keys.is_empty().then(|| self.read_file())?.ok()??;
        (current_secret.text() != refused.text()).then_some(current_secret)
    }

    /// Returns how to fix a rejected credential from the file, or `None` if no file is in use.
    pub(crate) fn sign_in_hint(&self) -> Option<String> {
        self.file
            .as_ref()
            .filter(|_| self.keys.is_empty())
            .map(SignInFile::sign_in_hint)
    }

    /// Reads the credentials file, which has a few kilobytes.
    fn read_file(&self) -> Result<Option<Credential>, String> {
        let Some(file) = &self.file else {
            return Ok(None);
        };
        let current_secret = file.read()?;
        Ok(Some(Credential {
            account: current_secret.account,
            is_stored_key: current_secret.is_key,
            ..Credential::key(current_secret.secret, 0)
        }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn credentials(extra: Value) -> Credentials {
        let entry = ModelEntry {
            extra: extra.as_object().unwrap().clone(),
            ..ModelEntry::new("e", "openai", "m")
        };
        Credentials::read(&entry, &["api_key", "openai_api_key"])
    }

    #[test]
    fn rejected_key_rotates_once() {
        let keys =
            credentials(json!({"openai_api_key": "first", "api_keys": ["second", " ", "third"]}));
        let key = || keys.current().unwrap().unwrap();
        let first = key();
        assert_eq!((first.text(), keys.len()), ("first", 3));
        keys.rotate_from(&first);
        keys.rotate_from(&first);
        assert_eq!(key().text(), "second");
        keys.rotate_from(&key());
        keys.rotate_from(&key());
        assert_eq!(key().text(), "first");
        assert!(
            credentials(json!({"api_key": ""}))
                .current()
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn credentials_file_is_read_for_every_call() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("auth.json");
        let keys = credentials(json!({"credentials_path": path.to_str().unwrap()}));
        assert!(!keys.is_empty() && keys.current().unwrap_err().contains("cannot be read"));
        let write = |token: &str| {
            std::fs::write(
                &path,
                json!({"tokens": {"access_token": token, "account_id": "acc"}}).to_string(),
            )
            .unwrap()
        };
        write("one");
        let first = keys.current().unwrap().unwrap();
        assert_eq!(
            (first.text(), first.account.as_deref()),
            ("one", Some("acc"))
        );
        assert!(keys.renewed(&first).is_none(), "nothing has changed");
        write("two");
        assert_eq!(
            keys.renewed(&first)
                .map(|key| key.text().to_owned())
                .as_deref(),
            Some("two")
        );
        assert_eq!(keys.current().unwrap().unwrap().text(), "two");
        std::fs::write(&path, "{}").unwrap();
        assert!(keys.renewed(&first).is_none() && keys.current().unwrap_err().contains("sign in"));
    }
}
