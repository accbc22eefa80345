//! Session of a person, and its rules.

use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::account::Account;

/// Time without use after which a session ends.
pub const IDLE_END: TimeDelta = TimeDelta::days(7);
/// Maximum duration of a session.
pub const HARD_END: TimeDelta = TimeDelta::days(30);
/// Minimum time between two extensions of a session.
pub const EXTENSION_INTERVAL: TimeDelta = TimeDelta::hours(1);

/// SHA-256 of a session token, in hexadecimal digits. A slow hash is not needed, because the token
/// is random.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenHash(String);

impl TokenHash {
    /// Returns the hash of a token.
    pub fn of(token: &str) -> Self {
        Self(hex::encode(Sha256::digest(token.as_bytes())))
    }

    /// Wraps a hash that a store returns.
    pub fn stored(text: String) -> Self {
        Self(text)
    }

    /// Returns the hash as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Session of an account on one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Public id, by which the owner lists and ends sessions.
    pub id: Uuid,
    /// Account.
    pub user_id: String,
    /// Hash of the token.
    pub token_hash: TokenHash,
    /// Start.
    pub created_at: DateTime<Utc>,
    /// Last use, exact to [`EXTENSION_INTERVAL`].
    pub last_used_at: DateTime<Utc>,
    /// `true` if the person wants to stay signed in when the browser closes.
    pub persistent: bool,
    /// User agent at the start, of at most [`MAX_AGENT`](super::MAX_AGENT) characters.
    pub user_agent: Option<String>,
    /// Client address at the start.
    pub address: Option<String>,
}

impl Session {
    /// Returns the end if the session is not used again.
    pub fn ends_at(&self) -> DateTime<Utc> {
        (self.last_used_at + IDLE_END).min(self.created_at + HARD_END)
    }

    /// Reports whether the session is valid at `at`.
    pub fn is_valid(&self, at: DateTime<Utc>) -> bool {
        at < self.ends_at()
    }

    /// Reports whether a use at `at` extends the session.
    pub fn needs_extension(&self, at: DateTime<Utc>) -> bool {
        self.is_valid(at) && at - self.last_used_at >= EXTENSION_INTERVAL
    }
}

/// Reason why a session does not sign its caller in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionRefusal {
    /// The session has ended.
    #[error("the session has ended")]
    Ended,
    /// The account is disabled.
    #[error("the account is disabled")]
    AccountDisabled,
}

/// Decides whether a session of an account is valid at `at`.
pub fn check_session(
    session: &Session,
    account: &Account,
    at: DateTime<Utc>,
) -> Result<(), SessionRefusal> {
    if !account.is_enabled() {
        return Err(SessionRefusal::AccountDisabled);
    }
    if session.user_id == account.id && session.is_valid(at) {
        Ok(())
    } else {
        Err(SessionRefusal::Ended)
    }
}

#[cfg(test)]
mod tests {
    use deerflow_runtime::testkit::at;

    use super::*;
    use crate::testkit::accounts::{account, session};

    #[test]
    fn session_ends_7_days_after_use_and_30_days_after_start() {
        let mut session = session(1, "ann", 0);
        let start = session.created_at;
        let just = TimeDelta::microseconds(1);
        assert_eq!(session.ends_at(), start + IDLE_END);
        assert!(session.is_valid(start + IDLE_END - just));
        assert!(!session.is_valid(start + IDLE_END));
        session.last_used_at = start + TimeDelta::days(29);
        assert!(session.is_valid(start + HARD_END - just));
        assert!(!session.is_valid(start + HARD_END));
    }

    #[test]
    fn session_is_extended_at_most_once_an_hour_while_valid() {
        let session = session(1, "ann", 0);
        let start = session.created_at;
        assert!(!session.needs_extension(start + TimeDelta::minutes(59)));
        assert!(session.needs_extension(start + TimeDelta::minutes(60)));
        assert!(!session.needs_extension(start + IDLE_END));
        assert!(!session.needs_extension(start - TimeDelta::days(1)));
    }

    #[test]
    fn session_of_disabled_or_other_account_is_refused() {
        let session = session(1, "ann", 0);
        let mut ann = account("ann", "ann@example.org");
        assert_eq!(check_session(&session, &ann, at(1)), Ok(()));
        let bob = account("bob", "bob@example.org");
        assert_eq!(
            check_session(&session, &bob, at(1)),
            Err(SessionRefusal::Ended)
        );
        ann.disabled_at = Some(at(1));
        assert_eq!(
            check_session(&session, &ann, at(1)),
            Err(SessionRefusal::AccountDisabled)
        );
    }
}
