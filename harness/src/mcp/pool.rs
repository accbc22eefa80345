//! Pool of open sessions: one per server and thread, so that a server's session state belongs to
//! one thread.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared, join_all};
use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::error::McpError;
use super::session::Session;

/// Maximum number of sessions. Beyond it the least recently used idle session is evicted.
const MAX_SESSIONS: usize = 256;
/// Idle time after which a session is closed.
pub(super) const MAX_IDLE: Duration = Duration::from_secs(30 * 60);

/// Key of a pooled session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SessionKey {
    /// Id of the configured server.
    pub(super) server: u64,
    /// User id.
    pub(super) user: String,
    /// Thread id.
    pub(super) thread: String,
}

/// Sessions that are open or being opened, in order of last use, the most recent one last.
#[derive(Debug)]
pub(super) struct Pool {
    max_sessions: usize,
    slots: Mutex<IndexMap<SessionKey, Slot>>,
}

/// Result of opening a session, shared by all callers that wait for it.
type Opening = BoxFuture<'static, Result<Arc<Session>, McpError>>;

#[derive(Debug)]
struct Slot {
    state: SessionState,
    last_used: Instant,
}

#[derive(Debug)]
enum SessionState {
    /// The session is being opened; the handle is weak, so that the attempt ends when no caller
    /// waits for it.
    Opening(Option<WeakShared<Opening>>),
    Open(Arc<Session>),
}

/// Open session, or a shared attempt to open one.
enum PoolEntry {
    Opening(Shared<Opening>),
    Open(Arc<Session>),
}

impl Slot {
    fn entry(&self) -> Option<PoolEntry> {
        match &self.state {
            SessionState::Opening(opening) => opening.as_ref()?.upgrade().map(PoolEntry::Opening),
            SessionState::Open(session) => {
                Some(PoolEntry::Open(session.clone())).filter(|_| !session.has_ended())
            }
        }
    }

    /// Returns the session if it is open.
    fn open(&self) -> Option<&Arc<Session>> {
        match &self.state {
            SessionState::Open(session) => Some(session).filter(|session| !session.has_ended()),
            SessionState::Opening(_) => None,
        }
    }

    /// `true` if a caller waits for the session or a call is in flight.
    fn is_in_use(&self) -> bool {
        match &self.state {
            SessionState::Opening(opening) => opening
                .as_ref()
                .is_some_and(|opening| opening.upgrade().is_some()),
            SessionState::Open(session) => Arc::strong_count(session) > 1,
        }
    }

    fn is_opening(&self, expected: &Shared<Opening>) -> bool {
        match &self.state {
            SessionState::Opening(Some(opening)) => opening
                .upgrade()
                .is_some_and(|opening| opening.ptr_eq(expected)),
            _ => false,
        }
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self::with_capacity(MAX_SESSIONS)
    }
}

impl Pool {
    /// Creates a pool with a limit on the number of sessions.
    pub(super) fn with_capacity(max_sessions: usize) -> Self {
        Self {
            max_sessions,
            slots: Mutex::default(),
        }
    }

    /// Returns the session of this key, and opens one if there is none. Concurrent callers share
    /// the result of one attempt, failures included; a later caller starts a new attempt.
    pub(super) async fn get(
        &self,
        key: &SessionKey,
        open: impl FnOnce() -> BoxFuture<'static, Result<Session, McpError>>,
    ) -> Result<Arc<Session>, McpError> {
        let opening = match self.get_or_open(key, open)? {
            PoolEntry::Open(session) => return Ok(session),
            PoolEntry::Opening(opening) => opening,
        };
        let opened = opening.clone().await;
        let mut slots = self.slots.lock();
        match (
            slots.get_mut(key).filter(|slot| slot.is_opening(&opening)),
            &opened,
        ) {
            (Some(slot), Ok(session)) => slot.state = SessionState::Open(session.clone()),
            (Some(_), Err(_)) => {
                slots.shift_remove(key);
            }
            (None, _) => {}
        }
        opened
    }

    fn get_or_open(
        &self,
        key: &SessionKey,
        open: impl FnOnce() -> BoxFuture<'static, Result<Session, McpError>>,
    ) -> Result<PoolEntry, McpError> {
        let mut slots = self.slots.lock();
        let before = slots.shift_remove(key);
        let last_used = Instant::now();
        if let Some((entry, Slot { state, .. })) = before.as_ref().and_then(Slot::entry).zip(before)
        {
            slots.insert(key.clone(), Slot { state, last_used });
            return Ok(entry);
        }
        // Only an idle session is evicted: a busy one would continue to run in addition to the new
        // one.
        let idle = if slots.len() < self.max_sessions {
            None
        } else {
            Some(slots.values().position(|slot| !slot.is_in_use()))
        };
        let oldest = match idle {
            None => None,
            Some(at) => slots.shift_remove_index(at.ok_or(McpError::Full(self.max_sessions))?),
        };
        let opening = open().map(|opened| opened.map(Arc::new)).boxed().shared();
        slots.insert(
            key.clone(),
            Slot {
                state: SessionState::Opening(opening.downgrade()),
                last_used,
            },
        );
        drop(slots);
        // Dropping the session kills its process.
        drop(oldest);
        Ok(PoolEntry::Opening(opening))
    }

    /// Removes a session from the pool after a call on it was abandoned, because late effects of
    /// that call could reach the next one. The session ends with the last call that is still in
    /// flight.
    pub(super) fn abandon(&self, key: &SessionKey, session: &Arc<Session>) {
        let mut slots = self.slots.lock();
        let matches = |slot: &Slot| matches!(&slot.state, SessionState::Open(state) if Arc::ptr_eq(state, session));
        let removed = if slots.get(key).is_some_and(matches) {
            slots.shift_remove(key)
        } else {
            None
        };
        drop(slots);
        drop(removed);
    }

    /// Returns an open session with this server, if there is one.
    pub(super) fn find_open(&self, server: u64) -> Option<Arc<Session>> {
        let slots = self.slots.lock();
        slots
            .iter()
            .rev()
            .filter(|(key, _)| key.server == server)
            .find_map(|(_, slot)| slot.open().cloned())
    }

    /// Closes the sessions that were not used since `cutoff`, and removes those that have ended.
    pub(super) async fn end_idle(&self, cutoff: Instant) {
        self.end(|_, slot| {
            slot.entry().is_none() || (slot.last_used < cutoff && !slot.is_in_use())
        })
        .await;
    }

    /// Closes all sessions with these servers gracefully.
    pub(super) async fn end_servers(&self, servers: &[u64]) {
        self.end(|key, _| servers.contains(&key.server)).await;
    }

    /// Closes all sessions of a thread gracefully.
    pub(super) async fn end_thread(&self, user: &str, thread: &str) {
        self.end(|key, _| key.user == user && key.thread == thread)
            .await;
    }

    /// Removes the matching sessions. Idle ones are closed gracefully; one that is in use ends with
    /// its last call.
    async fn end(&self, matches: impl Fn(&SessionKey, &Slot) -> bool) {
        let removed: Vec<Slot> = {
            let mut slots = self.slots.lock();
            let keys: Vec<SessionKey> = slots
                .iter()
                .filter(|(key, slot)| matches(key, slot))
                .map(|(key, _)| key.clone())
                .collect();
            keys.iter()
                .filter_map(|key| slots.shift_remove(key))
                .collect()
        };
        let sessions = removed.into_iter().filter_map(|slot| match slot.state {
            SessionState::Open(session) => Arc::into_inner(session),
            SessionState::Opening(_) => None,
        });
        join_all(sessions.map(Session::close)).await;
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
