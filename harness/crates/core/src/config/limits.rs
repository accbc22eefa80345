//! `limits`: maximum sizes of the fields that clients store, and memory of requests.

use serde::Deserialize;

use super::check::Checker;

/// Maximum sizes of fields in requests, in bytes of compact JSON, and memory of large requests and
/// answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LimitsConfig {
    /// Maximum size of a `metadata` object: as it is sent, and after it is merged.
    pub max_metadata_bytes: usize,
    /// Maximum size of `config`, and of `context`.
    pub max_config_bytes: usize,
    /// Maximum size of one message, and of one value of another channel.
    pub max_message_bytes: usize,
    /// Maximum size of the value of one item of the item store.
    pub max_item_bytes: usize,
    /// Memory of the large request bodies that are received and handled, in MiB. Read at the start.
    pub request_memory_mb: usize,
    /// Memory of the large answers that clients have not read yet, in MiB. Read at the start.
    pub answer_memory_mb: usize,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            max_metadata_bytes: 64 << 10,
            max_config_bytes: 256 << 10,
            max_message_bytes: 5 << 20,
            max_item_bytes: 1 << 20,
            request_memory_mb: 256,
            answer_memory_mb: 96,
        }
    }
}

impl LimitsConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        for (key, bytes) in [
            ("max_metadata_bytes", self.max_metadata_bytes),
            ("max_config_bytes", self.max_config_bytes),
            ("max_message_bytes", self.max_message_bytes),
            ("max_item_bytes", self.max_item_bytes),
        ] {
            check.within(key, bytes, 1_024..);
        }
        for (key, mib) in [
            ("request_memory_mb", self.request_memory_mb),
            ("answer_memory_mb", self.answer_memory_mb),
        ] {
            check.within(key, mib, 16..=1 << 20);
        }
    }
}
