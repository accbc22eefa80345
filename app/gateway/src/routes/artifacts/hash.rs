//! Hash of an artifact's content, to detect changes.

use sha2::{Digest, Sha256};

/// Returns the SHA-256 of a content in hexadecimal.
pub(super) fn hash(content: impl AsRef<[u8]>) -> String {
    hex::encode(Sha256::digest(content))
}
