//! Credentials file that another program writes when a user signs in. It is read for every call,
//! because that program renews its tokens.

use std::fs::Permissions;
use std::io::Read;
use std::path::{Path, PathBuf};

use secrecy::SecretString;
use serde_json::Value;

use crate::{ModelEntry, ProviderKind};
use deerflow_core::host_file;

/// Maximum size of the file, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 10;
/// JSON pointers of the token, in the files of the supported programs.
const TOKEN_POINTERS: &[&str] = &[
    "/tokens/access_token",
    "/claudeAiOauth/accessToken",
    "/access_token",
    "/accessToken",
];
const ACCOUNT_POINTERS: &[&str] = &["/tokens/account_id", "/account_id"];
/// JSON pointers of Codex's API key, and of the mode that selects it.
const KEY_POINTER: &str = "/OPENAI_API_KEY";
const MODE_POINTER: &str = "/auth_mode";
const KEY_MODE: &str = "apikey";

/// Credentials file of an entry.
#[derive(Debug)]
pub(super) struct SignInFile {
    path: PathBuf,
    /// Command that writes the file.
    command: Option<&'static str>,
}

/// Current content of the file.
#[derive(Debug)]
pub(super) struct SignIn {
    pub(super) secret: SecretString,
    /// Account, if the file names one.
    pub(super) account: Option<String>,
    /// `true` if the secret is an API key and not a user's token.
    pub(super) is_key: bool,
}

/// Checks the credentials file of an entry that has no key: returns its path, or the reason why
/// calls would fail. Returns `None` if the entry has a key or names no file.
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
    /// Returns the file in `credentials_path` of `entry`.
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

    /// Reads the file. The error names the file, the problem and the fix.
    pub(super) fn read(&self) -> Result<SignIn, String> {
        let sign_in = read_text(&self.path).and_then(|text| parse_sign_in(&text));
        sign_in.map_err(|failure| {
            format!(
                "its `credentials_path` {} {failure}: {}",
                self.path.display(),
                self.sign_in_hint()
            )
        })
    }

    /// Returns how to get a valid file.
    pub(super) fn sign_in_hint(&self) -> String {
        self.command.map_or_else(
            || "sign in again".to_owned(),
            |command| format!("sign in with `{command}`"),
        )
    }
}

fn read_text(path: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read ({error})");
    let Some(file) = host_file::open_regular(path).map_err(unreadable)? else {
        return Err("is not a file".to_owned());
    };
    if is_writable_by_all(&file.metadata().map_err(unreadable)?.permissions()) {
        return Err("is writable by all users".to_owned());
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        Err(format!("is longer than {} KiB", MAX_FILE_BYTES >> 10))
    } else {
        Ok(text)
    }
}

#[cfg(unix)]
fn is_writable_by_all(permissions: &Permissions) -> bool {
    std::os::unix::fs::PermissionsExt::mode(permissions) & 0o002 != 0
}

/// Returns `false`, because the access lists of other systems are not read.
#[cfg(not(unix))]
fn is_writable_by_all(_: &Permissions) -> bool {
    false
}

fn parse_sign_in(text: &str) -> Result<SignIn, String> {
    let json: Value = serde_json::from_str(text).map_err(|_| "is not a JSON file".to_owned())?;
    let text_at = |pointer: &str| {
        json.pointer(pointer)
            .and_then(Value::as_str)
            .filter(|text| !text.trim().is_empty())
    };
    let (token, key) = (
        TOKEN_POINTERS.iter().find_map(|pointer| text_at(pointer)),
        text_at(KEY_POINTER),
    );
    let is_key = key.is_some() && (token.is_none() || text_at(MODE_POINTER) == Some(KEY_MODE));
    let secret = if is_key { key } else { token }.ok_or("contains no token")?;
    let account = ACCOUNT_POINTERS
        .iter()
        .find_map(|pointer| text_at(pointer))
        .filter(|_| !is_key);
    Ok(SignIn {
        secret: SecretString::from(secret),
        account: account.map(str::to_owned),
        is_key,
    })
}

#[cfg(test)]
#[path = "sign_in_file_tests.rs"]
mod tests;
