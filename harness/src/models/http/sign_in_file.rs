//! The file in which another program keeps a person's sign-in: read at every call, for that program renews what is in it.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use secrecy::SecretString;
use serde_json::Value;

use crate::host_file;
use crate::models::{ModelEntry, ProviderKind};

/// What is longer is no sign-in.
const LONGEST_FILE: u64 = 64 << 10;
/// The permission of everybody to write.
const WRITABLE_BY_ALL: u32 = 0o002;
/// Where the programs that people sign in with keep their token.
const TOKEN_PLACES: &[&str] = &[
    "/tokens/access_token",
    "/claudeAiOauth/accessToken",
    "/access_token",
    "/accessToken",
];
const ACCOUNT_PLACES: &[&str] = &["/tokens/account_id", "/account_id"];
/// Where Codex keeps the key of those who sign in with one, and how it says that the key counts.
const KEY_PLACE: &str = "/OPENAI_API_KEY";
const MODE_PLACE: &str = "/auth_mode";
const KEY_MODE: &str = "apikey";

/// The file that an entry names.
#[derive(Debug)]
pub(super) struct SignInFile {
    path: PathBuf,
    /// What a person runs to have it written.
    command: Option<&'static str>,
}

/// What the file holds at the moment.
#[derive(Debug)]
pub(super) struct SignIn {
    pub(super) secret: SecretString,
    /// The account, where the file names one.
    pub(super) account: Option<String>,
    /// Whether the secret is a key of the provider's open API and no token of a person.
    pub(super) is_key: bool,
}

/// Looks for the sign-in of an entry without a key of its own: the path of its file, or why calls would fail. Nothing when the
/// entry has a key, or names no file.
pub fn sign_in(entry: &ModelEntry) -> Option<Result<PathBuf, String>> {
    if entry.api_key.is_some()
        || entry
            .extra
            .keys()
            .any(|key| key.ends_with("api_key") || key == "api_keys")
    {
        return None;
    }
    let file = SignInFile::of(entry)?;
    Some(file.read().map(|_| file.path.clone()))
}

impl SignInFile {
    /// The `credentials_path` of `entry`.
    pub(super) fn of(entry: &ModelEntry) -> Option<Self> {
        let path = entry
            .extra
            .get("credentials_path")?
            .as_str()
            .filter(|path| !path.trim().is_empty())?;
        let command = ProviderKind::parse(&entry.use_path)
            .ok()
            .and_then(ProviderKind::sign_in_command);
        Some(Self {
            path: PathBuf::from(path),
            command,
        })
    }

    /// Reads it; the error says what is wrong with which file, and what to do.
    pub(super) fn read(&self) -> Result<SignIn, String> {
        let found = text_of(&self.path).and_then(|text| understood(&text));
        found.map_err(|fault| {
            format!(
                "its `credentials_path` {} {fault}: {}",
                self.path.display(),
                self.way_out()
            )
        })
    }

    /// What to do when it is of no use.
    pub(super) fn way_out(&self) -> String {
        self.command.map_or_else(
            || "sign in again".to_owned(),
            |command| format!("sign in with `{command}`"),
        )
    }
}

fn text_of(path: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read ({error})");
    let Some(file) = host_file::open_regular(path).map_err(unreadable)? else {
        return Err("is not a file".to_owned());
    };
    if file.metadata().map_err(unreadable)?.permissions().mode() & WRITABLE_BY_ALL != 0 {
        return Err("may be written by everybody".to_owned());
    }
    let mut text = String::new();
    file.take(LONGEST_FILE + 1)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > LONGEST_FILE {
        Err(format!("is longer than {} KiB", LONGEST_FILE >> 10))
    } else {
        Ok(text)
    }
}

fn understood(text: &str) -> Result<SignIn, String> {
    let json: Value = serde_json::from_str(text).map_err(|_| "is not a JSON file".to_owned())?;
    let said = |place: &str| {
        json.pointer(place)
            .and_then(Value::as_str)
            .filter(|text| !text.trim().is_empty())
    };
    let (token, key) = (
        TOKEN_PLACES.iter().find_map(|place| said(place)),
        said(KEY_PLACE),
    );
    let is_key = key.is_some() && (token.is_none() || said(MODE_PLACE) == Some(KEY_MODE));
    let secret = if is_key { key } else { token }.ok_or("holds no token")?;
    let account = ACCOUNT_PLACES
        .iter()
        .find_map(|place| said(place))
        .filter(|_| !is_key);
    Ok(SignIn {
        secret: SecretString::from(secret),
        account: account.map(str::to_owned),
        is_key,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use secrecy::ExposeSecret;
    use serde_json::json;

    use super::*;

    fn entry(kind: &str, path: &Path) -> ModelEntry {
        let mut entry = ModelEntry::new("e", kind, "m");
        entry
            .extra
            .insert("credentials_path".to_owned(), json!(path.to_str().unwrap()));
        entry
    }

    #[test]
    fn both_layouts_of_codex_and_that_of_claude_are_understood() {
        let tokens = json!({"access_token": "token", "account_id": "acc", "refresh_token": "r"});
        for (file, secret, account, is_key) in [
            (
                json!({"OPENAI_API_KEY": null, "tokens": tokens}),
                "token",
                Some("acc"),
                false,
            ),
            (
                json!({"OPENAI_API_KEY": "sk-k", "tokens": null}),
                "sk-k",
                None,
                true,
            ),
            (
                json!({"auth_mode": "chatgpt", "OPENAI_API_KEY": "sk-k", "tokens": tokens}),
                "token",
                Some("acc"),
                false,
            ),
            (
                json!({"auth_mode": "apikey", "OPENAI_API_KEY": "sk-k", "tokens": tokens}),
                "sk-k",
                None,
                true,
            ),
            (
                json!({"claudeAiOauth": {"accessToken": "two"}}),
                "two",
                None,
                false,
            ),
        ] {
            let found = understood(&file.to_string()).unwrap();
            assert_eq!(
                (
                    found.secret.expose_secret(),
                    found.account.as_deref(),
                    found.is_key
                ),
                (secret, account, is_key),
                "{file}"
            );
        }
    }

    #[test]
    fn a_useless_file_is_named_with_the_way_out_and_never_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("auth.json");
        let fault = |kind: &str| sign_in(&entry(kind, &path)).unwrap().unwrap_err();
        let codex = |says: &str| {
            let fault = fault("codex");
            assert!(
                fault.contains(says)
                    && fault.contains(path.to_str().unwrap())
                    && fault.contains("`codex login`"),
                "{fault}"
            );
            assert!(!fault.contains("canary"), "{fault}");
        };
        codex("cannot be read");
        assert!(
            fault("claude").contains("`claude /login`")
                && fault("openai").ends_with(": sign in again")
        );
        fs::create_dir(&path).unwrap();
        codex("is not a file");
        fs::remove_dir(&path).unwrap();
        for (text, says) in [
            ("canary", "is not a JSON file"),
            (
                r#"{"tokens": {"refresh_token": "canary"}}"#,
                "holds no token",
            ),
        ] {
            fs::write(&path, text).unwrap();
            codex(says);
        }
        fs::write(&path, [0xff, 0xfe]).unwrap();
        codex("cannot be read");
        fs::write(&path, " ".repeat(65 << 10)).unwrap();
        codex("is longer than 64 KiB");
        fs::write(&path, r#"{"access_token": "canary"}"#).unwrap();
        assert_eq!(sign_in(&entry("codex", &path)), Some(Ok(path.clone())));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        codex("may be written by everybody");
    }

    #[test]
    fn the_file_of_an_entry_with_a_key_is_not_looked_for() {
        let nowhere = Path::new("/nowhere/auth.json");
        let mut other = entry("claude", nowhere);
        other
            .extra
            .insert("anthropic_api_key".to_owned(), json!("k"));
        assert!(sign_in(&other).is_none());
        assert!(
            sign_in(&ModelEntry {
                api_key: Some("k".into()),
                ..entry("codex", nowhere)
            })
            .is_none()
        );
        assert!(sign_in(&ModelEntry::new("e", "codex", "m")).is_none());
    }
}
