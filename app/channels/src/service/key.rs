//! Key with which entered credentials are encrypted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Length of the key and of a nonce in bytes.
const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;

/// Error of the key or of a ciphertext.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The configured key is no key.
    #[error("the key must be 32 bytes in base64 or in hexadecimal digits")]
    Malformed,
    /// Other users can read the key file.
    #[error("the key file can be read by others; set its mode to 600")]
    Exposed,
    /// The key file cannot be read or written.
    #[error("the key file cannot be used: {0}")]
    File(#[from] io::Error),
    /// The ciphertext was made with another key, or was changed.
    #[error("stored credentials cannot be decrypted with this key")]
    Undecipherable,
}

/// AES-256-GCM key.
#[derive(Clone)]
pub struct CredentialKey(Aes256Gcm);

impl std::fmt::Debug for CredentialKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CredentialKey")
    }
}

impl CredentialKey {
    /// Parses a key in base64 or in hexadecimal digits.
    ///
    /// # Errors
    /// [`KeyError::Malformed`].
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let bytes = hex::decode(text)
            .ok()
            .filter(|bytes| bytes.len() == KEY_BYTES)
            .or_else(|| STANDARD.decode(text).ok())
            .ok_or(KeyError::Malformed)?;
        let key = Aes256Gcm::new_from_slice(&bytes).map_err(|_| KeyError::Malformed)?;
        Ok(Self(key))
    }

    /// Reads the key from a file, which is created with mode 0600 and a random key if it does not
    /// exist.
    ///
    /// # Errors
    /// [`KeyError`], if the file is readable by others, malformed, or cannot be used.
    pub fn from_file(path: &Path) -> Result<Self, KeyError> {
        match File::open(path) {
            Ok(file) => Self::read(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(folder) = path.parent() {
                    fs::create_dir_all(folder)?;
                }
                let text = hex::encode(rand::random::<[u8; KEY_BYTES]>());
                let created = OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(path);
                match created {
                    Ok(mut file) => {
                        file.write_all(text.as_bytes())?;
                        file.sync_all()?;
                        Self::parse(&text)
                    }
                    // Another process created it at the same time.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        Self::read(File::open(path)?)
                    }
                    Err(error) => Err(error.into()),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the key from a file; `None` if it does not exist.
    ///
    /// # Errors
    /// [`KeyError`], if the file is readable by others, malformed, or cannot be read.
    pub fn from_existing_file(path: &Path) -> Result<Option<Self>, KeyError> {
        match File::open(path) {
            Ok(file) => Self::read(file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn read(mut file: File) -> Result<Self, KeyError> {
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            return Err(KeyError::Exposed);
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Self::parse(&text)
    }

    /// Encrypts a text. `purpose` must be the same when it is decrypted.
    pub(super) fn seal(&self, text: &str, purpose: &str) -> Result<String, KeyError> {
        let nonce: [u8; NONCE_BYTES] = rand::random();
        let payload = Payload {
            msg: text.as_bytes(),
            aad: purpose.as_bytes(),
        };
        let sealed = self
            .0
            .encrypt(&Nonce::from(nonce), payload)
            .map_err(|_| KeyError::Undecipherable)?;
        Ok(STANDARD.encode([nonce.as_slice(), &sealed].concat()))
    }

    /// Decrypts a text.
    pub(super) fn open(&self, sealed: &str, purpose: &str) -> Result<String, KeyError> {
        let bytes = STANDARD
            .decode(sealed)
            .map_err(|_| KeyError::Undecipherable)?;
        let (nonce, sealed) = bytes
            .split_first_chunk::<NONCE_BYTES>()
            .ok_or(KeyError::Undecipherable)?;
        let payload = Payload {
            msg: sealed,
            aad: purpose.as_bytes(),
        };
        let text = self
            .0
            .decrypt(&Nonce::from(*nonce), payload)
            .map_err(|_| KeyError::Undecipherable)?;
        String::from_utf8(text).map_err(|_| KeyError::Undecipherable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_text_opens_only_with_its_key_and_purpose() {
        let key = CredentialKey::parse(&"ab".repeat(32)).unwrap();
        let sealed = key.seal("secret", "slack").unwrap();
        assert!(!sealed.contains("secret"));
        assert_ne!(sealed, key.seal("secret", "slack").unwrap());
        assert_eq!(key.open(&sealed, "slack").unwrap(), "secret");
        assert!(key.open(&sealed, "discord").is_err());
        let other = CredentialKey::parse(&STANDARD.encode([1; 32])).unwrap();
        assert!(other.open(&sealed, "slack").is_err());
        assert!(key.open("", "slack").is_err());
        assert!(CredentialKey::parse("short").is_err());
    }

    #[test]
    fn key_file_is_created_once_and_must_be_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("channels/credentials.key");
        let sealed = CredentialKey::from_file(&path)
            .unwrap()
            .seal("x", "p")
            .unwrap();
        let again = CredentialKey::from_file(&path).unwrap();
        assert_eq!(again.open(&sealed, "p").unwrap(), "x");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(
            CredentialKey::from_file(&path),
            Err(KeyError::Exposed)
        ));
    }
}
