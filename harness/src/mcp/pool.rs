//! Conversations that stay open between calls: one per server and thread, so that what a server remembers belongs to one thread.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared, join_all};
use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::error::McpError;
use super::session::Session;

/// Conversations at once. Beyond that the one ends that nobody has used for the longest time.
const MOST_SESSIONS: usize = 256;
/// A conversation that nobody used for so long ends.
pub(super) const LONGEST_IDLE: Duration = Duration::from_secs(30 * 60);

/// Whose conversation it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SessionKey {
    /// The server as it was configured.
    pub(super) server: u64,
    /// The user.
    pub(super) user: String,
    /// The thread.
    pub(super) thread: String,
}

/// The open conversations, that which was used last at the end.
#[derive(Debug)]
pub(super) struct Pool {
    most: usize,
    slots: Mutex<IndexMap<SessionKey, Slot>>,
}

/// What opening one comes to, for all who wait for it.
type Opening = BoxFuture<'static, Result<Arc<Session>, McpError>>;

#[derive(Debug)]
struct Slot {
    held: Held,
    used: Instant,
}

#[derive(Debug)]
enum Held {
    /// Being opened, as long as somebody waits for it.
    Opening(Option<WeakShared<Opening>>),
    Open(Arc<Session>),
}

/// A conversation, or who waits for one.
enum Entered {
    Opening(Shared<Opening>),
    Open(Arc<Session>),
}

impl Slot {
    fn entered(&self) -> Option<Entered> {
        match &self.held {
            Held::Opening(opening) => opening.as_ref()?.upgrade().map(Entered::Opening),
            Held::Open(session) => {
                Some(Entered::Open(session.clone())).filter(|_| !session.is_over())
            }
        }
    }

    /// The conversation, if it is open.
    fn open(&self) -> Option<&Arc<Session>> {
        match &self.held {
            Held::Open(session) => Some(session).filter(|session| !session.is_over()),
            Held::Opening(_) => None,
        }
    }

    /// Whether somebody waits for it or a call is under way.
    fn is_in_use(&self) -> bool {
        match &self.held {
            Held::Opening(opening) => opening
                .as_ref()
                .is_some_and(|opening| opening.upgrade().is_some()),
            Held::Open(session) => Arc::strong_count(session) > 1,
        }
    }

    fn is_of(&self, wanted: &Shared<Opening>) -> bool {
        match &self.held {
            Held::Opening(Some(opening)) => opening
                .upgrade()
                .is_some_and(|opening| opening.ptr_eq(wanted)),
            _ => false,
        }
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self::with_room(MOST_SESSIONS)
    }
}

impl Pool {
    /// A pool of so many conversations at once.
    pub(super) fn with_room(most: usize) -> Self {
        Self {
            most,
            slots: Mutex::default(),
        }
    }

    /// The conversation of this key, opened when there is none. Who asks while it is being opened shares what comes of that, also a
    /// failure; whoever comes later tries again.
    pub(super) async fn get(
        &self,
        key: &SessionKey,
        open: impl FnOnce() -> BoxFuture<'static, Result<Session, McpError>>,
    ) -> Result<Arc<Session>, McpError> {
        let opening = match self.enter(key, open)? {
            Entered::Open(session) => return Ok(session),
            Entered::Opening(opening) => opening,
        };
        let opened = opening.clone().await;
        let mut slots = self.slots.lock();
        match (
            slots.get_mut(key).filter(|slot| slot.is_of(&opening)),
            &opened,
        ) {
            (Some(slot), Ok(session)) => slot.held = Held::Open(session.clone()),
            (Some(_), Err(_)) => {
                slots.shift_remove(key);
            }
            (None, _) => {}
        }
        opened
    }

    fn enter(
        &self,
        key: &SessionKey,
        open: impl FnOnce() -> BoxFuture<'static, Result<Session, McpError>>,
    ) -> Result<Entered, McpError> {
        let mut slots = self.slots.lock();
        let before = slots.shift_remove(key);
        let used = Instant::now();
        if let Some((entered, Slot { held, .. })) =
            before.as_ref().and_then(Slot::entered).zip(before)
        {
            slots.insert(key.clone(), Slot { held, used });
            return Ok(entered);
        }
        // A busy one that made room would go on beside the new one.
        let idle = if slots.len() < self.most {
            None
        } else {
            Some(slots.values().position(|slot| !slot.is_in_use()))
        };
        let oldest = match idle {
            None => None,
            Some(at) => slots.shift_remove_index(at.ok_or(McpError::Full(self.most))?),
        };
        let opening = open().map(|opened| opened.map(Arc::new)).boxed().shared();
        slots.insert(
            key.clone(),
            Slot {
                held: Held::Opening(opening.downgrade()),
                used,
            },
        );
        drop(slots);
        // Its process ends here.
        drop(oldest);
        Ok(Entered::Opening(opening))
    }

    /// Lets go of a conversation that somebody left in the middle of a call: nobody shall meet what is left of that call. It ends with
    /// the calls that are still under way.
    pub(super) fn abandon(&self, key: &SessionKey, session: &Arc<Session>) {
        let mut slots = self.slots.lock();
        let is_meant =
            |slot: &Slot| matches!(&slot.held, Held::Open(held) if Arc::ptr_eq(held, session));
        let gone = if slots.get(key).is_some_and(is_meant) {
            slots.shift_remove(key)
        } else {
            None
        };
        drop(slots);
        drop(gone);
    }

    /// Some conversation with this server that is open.
    pub(super) fn any_of(&self, server: u64) -> Option<Arc<Session>> {
        let slots = self.slots.lock();
        slots
            .iter()
            .rev()
            .filter(|(key, _)| key.server == server)
            .find_map(|(_, slot)| slot.open().cloned())
    }

    /// Ends the conversations that nobody used since `then`, and those that are over.
    pub(super) async fn end_idle(&self, then: Instant) {
        self.end(|_, slot| slot.entered().is_none() || (slot.used < then && !slot.is_in_use()))
            .await;
    }

    /// Ends all conversations with these servers, in order.
    pub(super) async fn end_servers(&self, servers: &[u64]) {
        self.end(|key, _| servers.contains(&key.server)).await;
    }

    /// Ends all conversations of a thread, in order.
    pub(super) async fn end_thread(&self, user: &str, thread: &str) {
        self.end(|key, _| key.user == user && key.thread == thread)
            .await;
    }

    /// A conversation that is in use ends with its last call.
    async fn end(&self, is_meant: impl Fn(&SessionKey, &Slot) -> bool) {
        let gone: Vec<Slot> = {
            let mut slots = self.slots.lock();
            let meant: Vec<SessionKey> = slots
                .iter()
                .filter(|(key, slot)| is_meant(key, slot))
                .map(|(key, _)| key.clone())
                .collect();
            meant
                .iter()
                .filter_map(|key| slots.shift_remove(key))
                .collect()
        };
        let sessions = gone.into_iter().filter_map(|slot| match slot.held {
            Held::Open(session) => Arc::into_inner(session),
            Held::Opening(_) => None,
        });
        join_all(sessions.map(Session::close)).await;
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
