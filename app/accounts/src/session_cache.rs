//! Sessions that this node read a moment ago.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use deerflow_domain::accounts::{
    Account, Session, SessionRefusal, SessionStore, TokenHash, check_session,
};
use harness::clock::Clock;
use harness::runtime::runs::store::StoreError;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Maximum age of an entry. Ended sessions, disabled accounts and changed roles hold on every node
/// after this time and the time of one read.
pub const MAX_AGE: Duration = Duration::from_millis(800);
/// Number of entries at which old ones are removed.
const CAPACITY: usize = 10_000;

/// Session with its account.
type Found = Arc<(Session, Account)>;

/// Reason why a token does not sign its holder in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// There is no such session: it was ended, or the token was never valid.
    #[error("there is no such session")]
    Unknown,
    /// The session is not valid any more.
    #[error(transparent)]
    Refused(#[from] SessionRefusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Effect of a request on its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionUse {
    /// The request extends the session.
    Extends,
    /// The request only reads the session.
    Reads,
}

/// Reads sessions and remembers them for [`MAX_AGE`].
#[derive(Debug)]
pub struct SessionCache {
    sessions: Arc<dyn SessionStore>,
    clock: Arc<dyn Clock>,
    entries: Mutex<HashMap<TokenHash, (Instant, Found)>>,
}

impl SessionCache {
    /// Creates an empty cache.
    pub fn new(sessions: Arc<dyn SessionStore>, clock: Arc<dyn Clock>) -> Self {
        Self {
            sessions,
            clock,
            entries: Mutex::default(),
        }
    }

    /// Returns the valid session of a token with its account. A use extends the session, at most
    /// once per hour; a failure of that is only logged.
    pub async fn authenticate(&self, token: &str, usage: SessionUse) -> Result<Found, TokenError> {
        let hash = TokenHash::of(token);
        let found = self.find(&hash).await?.ok_or(TokenError::Unknown)?;
        let now = self.clock.now();
        check_session(&found.0, &found.1, now)?;
        if usage == SessionUse::Extends && found.0.needs_extension(now) {
            if let Err(error) = self.sessions.extend(found.0.id, now).await {
                tracing::warn!(%error, session = %found.0.id, "session was not extended");
            }
            self.forget(&hash);
        }
        Ok(found)
    }

    /// Removes an entry, so that this node reads the session again.
    pub fn forget(&self, hash: &TokenHash) {
        self.entries.lock().remove(hash);
    }

    /// Removes the entries of a user.
    pub fn forget_user(&self, user: &str) {
        let mut entries = self.entries.lock();
        entries.retain(|_, (_, found)| found.0.user_id != user);
    }

    async fn find(&self, hash: &TokenHash) -> Result<Option<Found>, StoreError> {
        // The time before the read, so that a result that was read before a change is not younger
        // than the change.
        let now = Instant::now();
        if let Some((read_at, found)) = self.entries.lock().get(hash)
            && now - *read_at < MAX_AGE
        {
            return Ok(Some(found.clone()));
        }
        let found = self.sessions.find(hash).await?.map(Arc::new);
        let mut entries = self.entries.lock();
        if entries.len() >= CAPACITY {
            entries.retain(|_, (read_at, _)| now - *read_at < MAX_AGE);
        }
        match &found {
            // Unknown tokens are not remembered: they would fill the cache.
            None => drop(entries.remove(hash)),
            Some(found) => drop(entries.insert(hash.clone(), (now, found.clone()))),
        }
        Ok(found)
    }
}

#[cfg(test)]
#[path = "session_cache_tests.rs"]
mod tests;
