//! The keys of an entry: several are used one after another, and a sign-in file stands in for them where there are none.

use std::sync::atomic::{AtomicUsize, Ordering};

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::sign_in_file::SignInFile;
use crate::models::ModelEntry;

/// Shorter keys are placeholders for servers that want none.
const SHORTEST_SECRET: usize = 8;

/// The keys of one entry.
#[derive(Debug)]
pub(in crate::models) struct Credentials {
    keys: Vec<SecretString>,
    /// Which key is in use; it stays until the provider refuses it.
    current: AtomicUsize,
    file: Option<SignInFile>,
}

/// What one call signs in with.
#[derive(Debug, Clone)]
pub(in crate::models) struct Credential {
    secret: SecretString,
    /// The account, where a sign-in file names one.
    pub(in crate::models) account: Option<String>,
    /// Whether it is a key of the provider's open API that a sign-in file holds in place of a person's token.
    pub(in crate::models) is_filed_key: bool,
    place: usize,
}

impl Credential {
    /// The key itself.
    pub(in crate::models) fn text(&self) -> &str {
        self.secret.expose_secret().trim()
    }

    /// `text` without the key, should a server repeat it.
    pub(in crate::models) fn redact(&self, text: &str) -> String {
        let key = self.text();
        if key.len() < SHORTEST_SECRET {
            text.to_owned()
        } else {
            text.replace(key, "***")
        }
    }

    #[cfg(test)]
    pub(in crate::models) fn of(key: &str) -> Self {
        Self::key(SecretString::from(key), 0)
    }

    /// The key at `place` of an entry's own.
    fn key(secret: SecretString, place: usize) -> Self {
        Self {
            secret,
            account: None,
            is_filed_key: false,
            place,
        }
    }
}

impl Credentials {
    /// The keys of `entry`: its `api_key` under any of `names`, then its `api_keys`, then its `credentials_path`.
    pub(in crate::models) fn read(entry: &ModelEntry, names: &[&str]) -> Self {
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

    /// Whether there is nothing to sign in with.
    pub(in crate::models) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.file.is_none()
    }

    /// How many keys can be tried.
    pub(in crate::models) fn len(&self) -> usize {
        self.keys.len().max(1)
    }

    /// All keys, to see that they can be sent.
    pub(in crate::models) fn all(&self) -> impl Iterator<Item = Credential> {
        self.keys
            .iter()
            .enumerate()
            .map(|(place, secret)| Credential::key(secret.clone(), place))
    }

    /// What the next call signs in with; the error says what is wrong with the file.
    pub(in crate::models) fn current(&self) -> Result<Option<Credential>, String> {
        if self.keys.is_empty() {
            return self.read_file();
        }
        let place = self.current.load(Ordering::Relaxed) % self.keys.len();
        Ok(Some(Credential::key(self.keys[place].clone(), place)))
    }

    /// Leaves `refused` for the key after it, unless another call has done so already.
    pub(in crate::models) fn pass_over(&self, refused: &Credential) {
        let next = (refused.place + 1) % self.len();
        let _moved = self.current.compare_exchange(
            refused.place,
            next,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// What the file holds now, where that is not what was refused: its program has renewed the token in the meantime.
    pub(in crate::models) fn renewed(&self, refused: &Credential) -> Option<Credential> {
        let found = self.keys.is_empty().then(|| self.read_file())?.ok()??;
        (found.text() != refused.text()).then_some(found)
    }

    /// What a person does when what the file holds is refused; nothing where no file is in use.
    pub(in crate::models) fn way_out(&self) -> Option<String> {
        self.file
            .as_ref()
            .filter(|_| self.keys.is_empty())
            .map(SignInFile::way_out)
    }

    /// A few kilobytes of a local file.
    fn read_file(&self) -> Result<Option<Credential>, String> {
        let Some(file) = &self.file else {
            return Ok(None);
        };
        let found = file.read()?;
        Ok(Some(Credential {
            account: found.account,
            is_filed_key: found.is_key,
            ..Credential::key(found.secret, 0)
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
    fn a_refused_key_is_left_once_for_the_next() {
        let keys =
            credentials(json!({"openai_api_key": "first", "api_keys": ["second", " ", "third"]}));
        let key = || keys.current().unwrap().unwrap();
        let first = key();
        assert_eq!((first.text(), keys.len()), ("first", 3));
        keys.pass_over(&first);
        keys.pass_over(&first);
        assert_eq!(key().text(), "second");
        keys.pass_over(&key());
        keys.pass_over(&key());
        assert_eq!(key().text(), "first");
        assert!(
            credentials(json!({"api_key": ""}))
                .current()
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn a_sign_in_file_is_read_at_every_call() {
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
