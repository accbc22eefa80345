//! Rate limits as the headers of answers announce them.

use std::collections::HashMap;
use std::time::Duration;

use http::HeaderMap;
use tokio::time::Instant;

use super::answers::{seconds, text};
use crate::platform::PlatformError;

/// Number of entries above which expired ones are removed.
const MAX_ENTRIES: usize = 1000;

/// Buckets of routes, and the times until which they are closed.
#[derive(Debug, Default)]
pub(super) struct Limits {
    buckets: HashMap<String, String>,
    closed: HashMap<String, Instant>,
    account: Option<Instant>,
}

/// Returns the key of a route: its path with the channel, without other ids.
pub(super) fn route_key(method: &str, segments: &[&str]) -> String {
    let mut key = method.to_owned();
    for (index, segment) in segments.iter().enumerate() {
        let is_channel = index == 1 && segments[0] == "channels";
        let is_word = segment
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'@' | b'-'));
        key.push('/');
        key.push_str(if is_channel || is_word { segment } else { "*" });
    }
    key
}

impl Limits {
    /// Returns the limit that closes a route now.
    pub(super) fn check(&self, route: &str, now: Instant) -> Result<(), PlatformError> {
        let until = |until: Option<Instant>| {
            until
                .map(|until| until.saturating_duration_since(now))
                .filter(|delay| !delay.is_zero())
        };
        if let Some(retry_after) = until(self.account) {
            return Err(PlatformError::RateLimited {
                retry_after,
                account: true,
            });
        }
        match until(self.closed.get(&self.lane(route)).copied()) {
            Some(retry_after) => Err(PlatformError::RateLimited {
                retry_after,
                account: false,
            }),
            None => Ok(()),
        }
    }

    /// Learns from the headers of an answer.
    pub(super) fn learn(&mut self, route: &str, headers: &HeaderMap, now: Instant) {
        self.prune(now);
        if let Some(bucket) = text(headers, "x-ratelimit-bucket") {
            self.buckets.insert(route.to_owned(), bucket.to_owned());
        }
        let is_empty = text(headers, "x-ratelimit-remaining") == Some("0");
        if let (true, Some(delay)) = (is_empty, seconds(headers, "x-ratelimit-reset-after")) {
            self.close(route, now + delay);
        }
    }

    /// Learns from a refusal.
    pub(super) fn refused(&mut self, route: &str, delay: Duration, account: bool, now: Instant) {
        if account {
            self.account = Some(now + delay);
        } else {
            self.close(route, now + delay);
        }
    }

    fn close(&mut self, route: &str, until: Instant) {
        let lane = self.lane(route);
        self.closed.insert(lane, until);
    }

    /// Returns the key that routes with the same bucket and channel share.
    fn lane(&self, route: &str) -> String {
        let channel = route
            .split_once("/channels/")
            .and_then(|(_, rest)| rest.split('/').next())
            .unwrap_or_default();
        match self.buckets.get(route) {
            Some(bucket) => format!("{bucket} {channel}"),
            None => route.to_owned(),
        }
    }

    fn prune(&mut self, now: Instant) {
        if self.closed.len() > MAX_ENTRIES {
            self.closed.retain(|_, until| *until > now);
        }
        if self.buckets.len() > MAX_ENTRIES * 10 {
            self.buckets.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(bucket: &'static str, remaining: &'static str) -> HeaderMap {
        [
            ("x-ratelimit-bucket", bucket),
            ("x-ratelimit-remaining", remaining),
            ("x-ratelimit-reset-after", "1.5"),
        ]
        .into_iter()
        .map(|(name, value)| {
            let value = http::HeaderValue::from_static(value);
            (http::HeaderName::from_static(name), value)
        })
        .collect()
    }

    #[test]
    fn keys_contain_channels_but_no_other_ids() {
        let post = route_key("POST", &["channels", "20", "messages"]);
        assert_eq!(post, "POST/channels/20/messages");
        let patch = route_key("PATCH", &["channels", "20", "messages", "500"]);
        assert_eq!(patch, "PATCH/channels/20/messages/*");
        let press = route_key("POST", &["interactions", "5", "aW50.Zx", "callback"]);
        assert_eq!(press, "POST/interactions/*/*/callback");
    }

    #[tokio::test(start_paused = true)]
    async fn empty_bucket_closes_its_routes_until_reset() {
        let mut limits = Limits::default();
        let now = Instant::now();
        let (post, other) = ("POST/channels/20/messages", "POST/channels/21/messages");
        limits.learn(post, &headers("b", "1"), now);
        assert_eq!(limits.check(post, now), Ok(()));
        limits.learn(post, &headers("b", "0"), now);
        assert_eq!(
            limits.check(post, now + Duration::from_millis(500)),
            Err(PlatformError::RateLimited {
                retry_after: Duration::from_secs(1),
                account: false
            })
        );
        assert_eq!(limits.check(other, now), Ok(()));
        assert_eq!(limits.check(post, now + Duration::from_secs(2)), Ok(()));
        limits.refused(other, Duration::from_secs(3), true, now);
        assert!(limits.check(post, now + Duration::from_secs(2)).is_err());
    }
}
