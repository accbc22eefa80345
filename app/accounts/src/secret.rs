//! Secret of an installation, from which all signing keys are derived.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest as _, Sha256};

/// Name of the file in the home folder.
pub const SECRET_FILE: &str = ".jwt_secret";

/// Reason why there is no secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read or created.
    #[error(
        "cannot read or create the secret {path}: {source}; set AUTH_JWT_SECRET or repair the file"
    )]
    File {
        /// Path.
        path: PathBuf,
        /// Error of the file system.
        source: io::Error,
    },
    /// The file is empty.
    #[error("the secret {path} is empty; delete the file or set AUTH_JWT_SECRET")]
    Empty {
        /// Path.
        path: PathBuf,
    },
}

/// Secret of an installation. Hidden in debug output.
#[derive(Debug, Clone)]
pub struct SigningSecret(SecretString);

impl SigningSecret {
    /// Returns the configured secret (`AUTH_JWT_SECRET`), or that of the file [`SECRET_FILE`] in
    /// `home`, which is created with mode 0600 if it does not exist. Of several processes that
    /// create it at the same time, all read the same one.
    pub fn load(configured: Option<&str>, home: &Path) -> Result<Self, SecretError> {
        if let Some(secret) = configured.filter(|secret| !secret.trim().is_empty()) {
            return Ok(Self(secret.to_owned().into()));
        }
        let path = home.join(SECRET_FILE);
        let text = read_or_create(&path).map_err(|source| SecretError::File {
            path: path.clone(),
            source,
        })?;
        let secret = text.trim();
        if secret.is_empty() {
            return Err(SecretError::Empty { path });
        }
        Ok(Self(secret.to_owned().into()))
    }

    /// Derives a key. Different purposes have independent keys.
    pub fn key(&self, purpose: &str) -> [u8; 32] {
        let mut mac = mac(self.0.expose_secret().as_bytes());
        mac.update(purpose.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

/// Starts an HMAC-SHA-256 whose key is the SHA-256 of `key`.
pub(crate) fn mac(key: &[u8]) -> Hmac<Sha256> {
    // An HMAC pads its key with zeros to the length of a block.
    let mut block = [0; 64];
    block[..32].copy_from_slice(&Sha256::digest(key));
    Hmac::new(&block.into())
}

fn read_or_create(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        read => return read,
    }
    let home = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(home)?;
    // A temporary file has mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(home)?;
    file.write_all(hex::encode(rand::random::<[u8; 32]>()).as_bytes())?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Ok(_) => fs::File::open(home)?.sync_all()?,
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.error),
    }
    fs::read_to_string(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn configured_secret_needs_no_file() {
        let home = tempfile::tempdir().unwrap();
        let secret = SigningSecret::load(Some("given"), home.path()).unwrap();
        assert_eq!(secret.0.expose_secret(), "given");
        assert!(!home.path().join(SECRET_FILE).exists());
        assert!(!format!("{secret:?}").contains("given"));
        assert_ne!(secret.key("a"), secret.key("b"));
    }

    #[test]
    fn file_is_created_once_with_mode_0600() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("new");
        let load = || SigningSecret::load(Some(" "), &folder).unwrap();
        let keys: Vec<[u8; 32]> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| load().key("x"))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
        assert_eq!(load().0.expose_secret().len(), 64);
        let mode = fs::metadata(folder.join(SECRET_FILE))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn unreadable_or_empty_file_is_an_error_with_path() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(SECRET_FILE);
        fs::write(&path, " \n").unwrap();
        let error = SigningSecret::load(None, home.path()).unwrap_err();
        assert!(matches!(error, SecretError::Empty { .. }));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let error = SigningSecret::load(None, home.path()).unwrap_err();
        assert!(error.to_string().contains(SECRET_FILE), "{error}");
    }
}
