//! Content of scanned files: reading within a budget, and names that indicate secrets.

use std::io::Read;

use sha2::{Digest, Sha256};

use super::facts::Facts;
use super::location::Location;
use crate::sandbox::safe_fs::{Entry, SafeDir};

/// Content of a file, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// Not read, because the facts of the file have not changed.
    Unchanged,
    /// Not read: larger than the limit of a diff.
    Large,
    /// Not read: the name indicates a secret.
    Sensitive,
    /// Not read: unreadable, or beyond the budget of the scan.
    Unread,
    /// Not UTF-8 text, with its SHA-256.
    Binary(String),
    /// Text.
    Text(String),
}

impl Content {
    /// Returns the SHA-256 in hex, if the content is known.
    pub(super) fn sha256(&self) -> Option<String> {
        match self {
            Self::Binary(hash) => Some(hash.clone()),
            Self::Text(text) => Some(sha256(text.as_bytes())),
            Self::Unchanged | Self::Large | Self::Sensitive | Self::Unread => None,
        }
    }
}

/// Bytes that a scan may still read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    pub(super) bytes: u64,
    /// Maximum size of one file.
    pub(super) file_bytes: u64,
}

impl Budget {
    /// Reads a file that is small and not sensitive.
    pub(super) fn read(
        &mut self,
        directory: &SafeDir,
        entry: &Entry,
        location: &Location,
        facts: Facts,
    ) -> Content {
        if is_sensitive(&location.path) {
            return Content::Sensitive;
        }
        if facts.size > self.file_bytes {
            return Content::Large;
        }
        if facts.size > self.bytes {
            return Content::Unread;
        }
        let Ok(Some(file)) = directory.open_regular(&entry.name) else {
            return Content::Unread;
        };
        // The file may grow while it is read.
        let limit = self.file_bytes.min(self.bytes);
        let mut bytes = Vec::new();
        match file.take(limit + 1).read_to_end(&mut bytes) {
            Ok(length) if length as u64 <= limit => self.bytes -= length as u64,
            _ => return Content::Unread,
        }
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Content::Text(text),
            Ok(text) => Content::Binary(sha256(text.as_bytes())),
            Err(error) => Content::Binary(sha256(error.as_bytes())),
        }
    }
}

/// Returns `true` if a name of the path indicates secrets: the content is neither read nor reported.
pub(super) fn is_sensitive(path: &str) -> bool {
    const NAMES: [&str; 8] = [
        ".env",
        ".netrc",
        ".npmrc",
        ".pgpass",
        ".pypirc",
        ".htpasswd",
        "id_rsa",
        "id_ed25519",
    ];
    const ENDINGS: [&str; 7] = [".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx"];
    const PARTS: [&str; 7] = [
        "secret",
        "credential",
        "password",
        "private_key",
        "api_key",
        "apikey",
        "token",
    ];
    path.to_lowercase().split('/').any(|name| {
        NAMES.contains(&name)
            || name.starts_with(".env.")
            || ENDINGS.iter().any(|ending| name.ends_with(ending))
            || PARTS.iter().any(|part| name.contains(part))
    })
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
