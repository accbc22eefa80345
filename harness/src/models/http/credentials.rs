//! The keys of an entry: several are used one after another, and a file of another program's sign-in is read at every call.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::models::ModelEntry;

/// Shorter keys are placeholders for servers that want none.
const SHORTEST_SECRET: usize = 8;
/// Where the programs that people sign in with keep their token.
const TOKEN_PLACES: &[&str] = &["/tokens/access_token", "/claudeAiOauth/accessToken", "/access_token", "/accessToken", "/OPENAI_API_KEY"];
const ACCOUNT_PLACES: &[&str] = &["/tokens/account_id", "/account_id"];

/// The keys of one entry.
#[derive(Debug)]
pub(in crate::models) struct Credentials {
    keys: Vec<SecretString>,
    /// Which key is in use; it stays until the provider refuses it.
    current: AtomicUsize,
    file: Option<PathBuf>,
}

/// What one call signs in with.
#[derive(Debug, Clone)]
pub(in crate::models) struct Credential {
    secret: SecretString,
    /// The account, where a sign-in file names one.
    pub(in crate::models) account: Option<String>,
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
        if key.len() < SHORTEST_SECRET { text.to_owned() } else { text.replace(key, "***") }
    }

    #[cfg(test)]
    pub(in crate::models) fn of(key: &str) -> Self {
        Self { secret: SecretString::from(key), account: None, place: 0 }
    }
}

impl Credentials {
    /// The keys of `entry`: its `api_key` under any of `names`, then its `api_keys`, then its `credentials_path`.
    pub(in crate::models) fn read(entry: &ModelEntry, names: &[&str]) -> Self {
        let text = |key: &str| entry.extra.get(key)?.as_str().filter(|text| !text.trim().is_empty());
        let written = names.iter().find_map(|name| text(name)).map(SecretString::from);
        let several = entry.extra.get("api_keys").and_then(Value::as_array).into_iter().flatten();
        let several = several.filter_map(Value::as_str).filter(|key| !key.trim().is_empty()).map(SecretString::from);
        let keys = entry.api_key.clone().or(written).into_iter().chain(several).collect();
        Self { keys, current: AtomicUsize::new(0), file: text("credentials_path").map(PathBuf::from) }
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
        self.keys.iter().enumerate().map(|(place, secret)| Credential { secret: secret.clone(), account: None, place })
    }

    /// What the next call signs in with; the error says what is wrong with the file.
    pub(in crate::models) fn current(&self) -> Result<Option<Credential>, String> {
        if self.keys.is_empty() {
            return self.read_file();
        }
        let place = self.current.load(Ordering::Relaxed) % self.keys.len();
        Ok(Some(Credential { secret: self.keys[place].clone(), account: None, place }))
    }

    /// Leaves `refused` for the key after it, unless another call has done so already.
    pub(in crate::models) fn pass_over(&self, refused: &Credential) {
        let next = (refused.place + 1) % self.len();
        let _moved = self.current.compare_exchange(refused.place, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// A few kilobytes of a local file: its program renews the token in it, so it is read anew each time.
    fn read_file(&self) -> Result<Option<Credential>, String> {
        let Some(path) = &self.file else { return Ok(None) };
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| format!("its `credentials_path` {shown} cannot be read: {error}"))?;
        let json: Value = serde_json::from_str(&text).map_err(|_| format!("its `credentials_path` {shown} is not a JSON file"))?;
        let find = |places: &[&str]| places.iter().find_map(|place| json.pointer(place)?.as_str()).filter(|text| !text.trim().is_empty());
        let token = find(TOKEN_PLACES).ok_or_else(|| format!("its `credentials_path` {shown} holds no token: sign in again"))?;
        Ok(Some(Credential { secret: SecretString::from(token), account: find(ACCOUNT_PLACES).map(str::to_owned), place: 0 }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn credentials(extra: Value) -> Credentials {
        let entry = ModelEntry { extra: extra.as_object().unwrap().clone(), ..ModelEntry::new("e", "openai", "m") };
        Credentials::read(&entry, &["api_key", "openai_api_key"])
    }

    #[test]
    fn a_refused_key_is_left_once_for_the_next() {
        let keys = credentials(json!({"openai_api_key": "first", "api_keys": ["second", " ", "third"]}));
        let key = || keys.current().unwrap().unwrap();
        let first = key();
        assert_eq!((first.text(), keys.len()), ("first", 3));
        keys.pass_over(&first);
        keys.pass_over(&first);
        assert_eq!(key().text(), "second");
        keys.pass_over(&key());
        keys.pass_over(&key());
        assert_eq!(key().text(), "first");
        assert!(credentials(json!({"api_key": ""})).current().unwrap().is_none());
    }

    #[test]
    fn a_sign_in_file_is_read_at_every_call() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("auth.json");
        let keys = credentials(json!({"credentials_path": path.to_str().unwrap()}));
        assert!(!keys.is_empty() && keys.current().unwrap_err().contains("cannot be read"));
        for (text, token, account) in [
            (json!({"tokens": {"access_token": "one", "account_id": "acc"}}), "one", Some("acc")),
            (json!({"claudeAiOauth": {"accessToken": "two"}}), "two", None),
        ] {
            std::fs::write(&path, text.to_string()).unwrap();
            let key = keys.current().unwrap().unwrap();
            assert_eq!((key.text(), key.account.as_deref()), (token, account));
        }
        std::fs::write(&path, "{}").unwrap();
        assert!(keys.current().unwrap_err().contains("sign in"));
    }
}
