//! Facts of a thread's metadata in the form in which the index stores them. A change of this form
//! needs a migration that indexes all threads again.

use std::collections::HashSet;

use deerflow_domain::containment::{Fact, facts};
use serde_json::{Map, Value};
use uuid::Uuid;

/// Maximum number of stored facts per thread. Searches do not find the others.
const MAX_FACTS: usize = 1_000;
/// Longer values are stored as a digest: an index entry of Postgres has at most 2,700 bytes.
const MAX_VALUE_BYTES: usize = 256;

/// UUID namespace of the digests.
const DIGEST_NAMESPACE: Uuid = Uuid::from_u128(0x6e15_5a5f_54d0_4f3b_9a52_0a4f_5e1d_2c77);

/// Returns path and value as stored. The path is already bounded.
pub(crate) fn stored_fact(fact: Fact) -> (String, String) {
    (fact.path, bounded(fact.value))
}

fn bounded(text: String) -> String {
    if text.len() <= MAX_VALUE_BYTES {
        text
    } else {
        format!("#{}", Uuid::new_v5(&DIGEST_NAMESPACE, text.as_bytes()))
    }
}

/// Returns the stored facts of metadata.
pub(crate) fn fact_set(metadata: &Map<String, Value>) -> HashSet<(String, String)> {
    facts(metadata, MAX_FACTS)
        .into_iter()
        .map(stored_fact)
        .collect()
}
