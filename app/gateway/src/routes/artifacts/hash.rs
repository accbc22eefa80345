//! How an artifact's content is told from what it was before.

use sha2::{Digest, Sha256};

/// The SHA-256 of a content in hexadecimal.
pub(super) fn hash(content: impl AsRef<[u8]>) -> String {
    hex::encode(Sha256::digest(content))
}
