//! Password hashes: Argon2id for new ones, and verification of the hashes of a DeerFlow
//! installation.

mod argon;
mod legacy;
mod pool;

pub use pool::{Busy, PasswordPool, SLOT_TIMEOUT};

/// Result of a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verification {
    /// `true` if the password is right.
    pub matches: bool,
    /// `true` if the hash is to be replaced by one of the current algorithm and costs.
    pub needs_rehash: bool,
}

/// Maximum length of a password that is verified, in bytes. Imported passwords may be longer than
/// the rule of new ones permits.
const MAX_BYTES: usize = 4_096;

/// Computes the hash of a new password. Takes some 30 ms of one processor and 19 MiB.
fn hash(password: &str) -> Option<String> {
    argon::hash(password.as_bytes(), &rand::random())
}

/// Verifies a password. Without a stored hash, the same work is done for nothing. A hash that cannot
/// be read never matches.
fn verify(password: &str, stored: Option<&str>) -> Verification {
    let password = password.as_bytes();
    let stored = stored.unwrap_or_else(|| argon::dummy());
    let is_argon = argon::is_own(stored);
    let matches = match (password.len() <= MAX_BYTES, is_argon) {
        (true, true) => argon::verify(password, stored),
        (true, false) => legacy::verify(password, stored),
        (false, _) => {
            argon::verify(b"", argon::dummy());
            false
        }
    };
    Verification {
        matches,
        needs_rehash: !argon::is_current(stored),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_verifies_only_its_password() {
        let stored = hash("correct horse").unwrap();
        assert!(
            stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{stored}"
        );
        let verification = verify("correct horse", Some(&stored));
        assert_eq!(
            verification,
            Verification {
                matches: true,
                needs_rehash: false
            }
        );
        assert!(!verify("correct Horse", Some(&stored)).matches);
        assert!(!verify("", Some(&stored)).matches);
        assert_ne!(hash("correct horse").unwrap(), stored);
    }

    #[test]
    fn missing_hash_matches_no_password() {
        for password in ["", "x", "correct horse"] {
            assert!(!verify(password, None).matches);
        }
    }

    #[test]
    fn password_over_4096_bytes_never_matches() {
        let long = "x".repeat(MAX_BYTES + 1);
        let stored = hash(&long).unwrap();
        assert!(!verify(&long, Some(&stored)).matches);
    }
}
