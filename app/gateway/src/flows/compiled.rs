//! Compiled flows by the hash of their content.

use std::collections::HashMap;
use std::sync::Arc;

use deerflow_flow::compiled::CompiledFlow;
use parking_lot::Mutex;

/// Maximum number of compiled flows in memory; each may take some megabytes.
const MAX_COMPILED: usize = 128;

/// Compiled flows; beyond the maximum, the least recently used one is evicted.
#[derive(Debug, Default)]
pub(super) struct CompiledFlows(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    by_hash: HashMap<String, Entry>,
    /// Number of uses.
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    flow: Arc<CompiledFlow>,
    last_use: u64,
}

impl CompiledFlows {
    /// Returns a compiled flow.
    pub(super) fn get(&self, hash: &str) -> Option<Arc<CompiledFlow>> {
        let mut entries = self.0.lock();
        entries.uses += 1;
        let now = entries.uses;
        let entry = entries.by_hash.get_mut(hash)?;
        entry.last_use = now;
        Some(entry.flow.clone())
    }

    /// Adds a compiled flow.
    pub(super) fn insert(&self, hash: &str, flow: Arc<CompiledFlow>) {
        let mut entries = self.0.lock();
        entries.uses += 1;
        let last_use = entries.uses;
        entries
            .by_hash
            .insert(hash.to_owned(), Entry { flow, last_use });
        if entries.by_hash.len() > MAX_COMPILED {
            let oldest = entries
                .by_hash
                .iter()
                .min_by_key(|(_, entry)| entry.last_use);
            if let Some(oldest) = oldest.map(|(hash, _)| hash.clone()) {
                entries.by_hash.remove(&oldest);
            }
        }
    }
}
