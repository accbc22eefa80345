//! Cache of resolved agents, one slot per request.

use std::sync::Arc;

use hashlink::LruCache;
use parking_lot::Mutex;

use super::factory::{Resolved, Stamp};
use super::request::AgentRequest;
use crate::rechecked::Rechecked;

/// Maximum number of requests whose agents are cached.
pub(super) const MAX_RESOLVED: usize = 1024;

/// Agent of one request.
pub(super) type Slot = Rechecked<Resolved, Option<Stamp>>;

/// Resolved agents by request, least recently used first. Each entry belongs to one user.
#[derive(Debug)]
pub(super) struct ResolvedAgents(Mutex<Cached>);

#[derive(Debug)]
struct Cached {
    slots: LruCache<AgentRequest, Arc<Slot>>,
    /// Newest version of the dynamic tools.
    live_version: u64,
}

impl Default for ResolvedAgents {
    fn default() -> Self {
        Self(Mutex::new(Cached {
            slots: LruCache::new(MAX_RESOLVED),
            live_version: 0,
        }))
    }
}

impl ResolvedAgents {
    /// Returns the slot of a request, and marks it as the most recently used one. A newer version
    /// of the dynamic tools removes the agents with older ones, which hold their tools.
    pub(super) fn slot(&self, request: &AgentRequest, live_version: u64) -> Arc<Slot> {
        let mut cached = self.0.lock();
        if live_version > cached.live_version {
            cached.live_version = live_version;
            cached.slots.clear();
        }
        if let Some(slot) = cached.slots.get(request) {
            return slot.clone();
        }
        let slot = Arc::<Slot>::default();
        cached.slots.insert(request.clone(), slot.clone());
        slot
    }

    /// Removes the slot of a request whose agent could not be resolved.
    pub(super) fn remove_empty(&self, request: &AgentRequest) {
        let mut cached = self.0.lock();
        if cached
            .slots
            .peek(request)
            .is_some_and(|slot| slot.is_empty())
        {
            cached.slots.remove(request);
        }
    }

    /// Removes all agents.
    pub(super) fn clear(&self) {
        self.0.lock().slots.clear();
    }

    /// Returns the number of cached requests.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().slots.len()
    }
}
