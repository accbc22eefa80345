//! Cache of the access token.

use std::time::Duration;

use secrecy::SecretString;
use tokio::time::Instant;

/// Time before its end at which a token is renewed.
const RESERVE: Duration = Duration::from_secs(300);
/// Minimum time for which a token is used.
const MIN_USE: Duration = Duration::from_secs(10);

/// Token with the time of its renewal.
#[derive(Debug, Clone)]
pub(super) struct Token {
    /// Token.
    pub(super) value: SecretString,
    renew_at: Instant,
}

impl Token {
    /// Creates a token that is valid for a number of seconds.
    pub(super) fn new(value: SecretString, seconds: u64, now: Instant) -> Self {
        let lifetime = Duration::from_secs(seconds.min(86_400));
        Self {
            value,
            renew_at: now + lifetime.saturating_sub(RESERVE).max(MIN_USE),
        }
    }

    /// `true` if the token may be used.
    pub(super) fn is_fresh(&self, now: Instant) -> bool {
        now < self.renew_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn token_is_renewed_before_its_end() {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let token = Token::new("t".into(), 7200, now);
        assert!(token.is_fresh(at(6899)));
        assert!(!token.is_fresh(at(6900)));
        let short = Token::new("t".into(), 0, now);
        assert!(short.is_fresh(at(9)));
        assert!(!short.is_fresh(at(10)));
    }
}
