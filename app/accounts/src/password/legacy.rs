//! Hashes of a DeerFlow installation: bcrypt, of the password or of its SHA-256.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Prefix of bcrypt over the base64 text of the password's SHA-256.
const SECOND: &str = "$dfv2$";
/// Prefix of bcrypt over the password.
const FIRST: &str = "$dfv1$";
/// Maximum binary logarithm of the rounds: a damaged row must not occupy a processor for minutes.
const MAX_COST: u32 = 16;

/// Verifies a password; a hash that cannot be read does not match.
pub(super) fn verify(password: &[u8], stored: &str) -> bool {
    if let Some(hash) = stored.strip_prefix(SECOND) {
        let text = STANDARD.encode(Sha256::digest(password));
        return matches(text.as_bytes(), hash);
    }
    matches(password, stored.strip_prefix(FIRST).unwrap_or(stored))
}

fn matches(password: &[u8], hash: &str) -> bool {
    let is_affordable = hash
        .parse::<bcrypt::HashParts>()
        .is_ok_and(|parts| parts.get_cost() <= MAX_COST);
    is_affordable && bcrypt::verify(password, hash).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// bcrypt of `correct horse` and of the base64 SHA-256 of it, each with cost 4.
    fn hashes() -> (String, String) {
        let salted = |text: &[u8]| {
            let parts = bcrypt::hash_with_salt(text, 4, [7; 16]).unwrap();
            parts.format_for_version(bcrypt::Version::TwoB)
        };
        let digest = STANDARD.encode(Sha256::digest("correct horse"));
        (salted(b"correct horse"), salted(digest.as_bytes()))
    }

    #[test]
    fn all_three_forms_are_verified() {
        let (plain, digest) = hashes();
        for stored in [
            format!("$dfv2${digest}"),
            format!("$dfv1${plain}"),
            plain.clone(),
        ] {
            assert!(verify(b"correct horse", &stored), "{stored}");
            assert!(!verify(b"correct horsf", &stored), "{stored}");
        }
        assert!(verify(b"correct horse", &plain.replace("$2b$", "$2a$")));
        // A form is not verified as another one.
        assert!(!verify(b"correct horse", &format!("$dfv2${plain}")));
        assert!(!verify(b"correct horse", &format!("$dfv1${digest}")));
    }

    #[test]
    fn hash_of_other_bcrypt_library_is_verified() {
        // Computed by Python's `bcrypt`, which DeerFlow uses.
        let stored = "$dfv2$$2b$04$18jv3HFWyTlgobN/4tbv6ueQ/c61c33zo5kLwPg7O814Wiyrgn1va";
        assert!(verify(b"correct horse", stored));
        assert!(!verify(b"correct horsf", stored));
    }

    #[test]
    fn published_bcrypt_hash_is_verified() {
        // Published test vector.
        let stored = "$2a$06$If6bvum7DFjUnE9p2uDeDu0YHzrHM6tf.iqN8.yx.jNN1ILEf7h0i";
        assert!(verify(b"abc", stored));
        assert!(!verify(b"abd", stored));
    }

    #[test]
    fn broken_hash_never_matches() {
        let (plain, _) = hashes();
        for broken in [
            "",
            "$dfv1$",
            "$dfv2$",
            "$dfv3$x",
            "plain text",
            "$2b$",
            "$2b$04$short",
            &plain[..plain.len() - 1],
            &plain.replace("$04$", "$99$"),
            &plain.replace("$04$", "$31$"),
            &format!("$dfv1$$dfv1${plain}"),
        ] {
            assert!(!verify(b"correct horse", broken), "{broken}");
        }
    }
}
