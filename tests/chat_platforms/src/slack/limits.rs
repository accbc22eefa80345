//! Rate limits: a minimum interval per channel with bursts, and tiers per method.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::answer::Failure;
use crate::common::Window;

/// Posts of a channel that may follow each other at once; their mean interval is one second.
const BURST: usize = 3;

/// Returns the calls per minute of a method.
fn tier(method: &str) -> Option<usize> {
    Some(match method {
        // Tier 1 with the burst that reconnecting needs.
        "apps.connections.open" => 10,
        "chat.startStream" | "chat.stopStream" | "reactions.remove" => 20,
        "chat.update"
        | "chat.delete"
        | "reactions.add"
        | "conversations.history"
        | "conversations.info"
        | "conversations.replies" => 50,
        "chat.appendStream"
        | "files.info"
        | "files.getUploadURLExternal"
        | "auth.test"
        | "files.completeUploadExternal"
        | "chat.postEphemeral" => 100,
        _ => return None,
    })
}

/// Counted calls.
#[derive(Debug, Default)]
pub(super) struct Limits {
    methods: HashMap<String, Window>,
    channels: HashMap<String, Window>,
}

impl Limits {
    /// Counts a call, or refuses it.
    pub(super) fn call(
        &mut self,
        method: &str,
        channel: Option<&str>,
        now: Instant,
    ) -> Result<(), Failure> {
        if let Some(per_minute) = tier(method) {
            let window = self
                .methods
                .entry(method.to_owned())
                .or_insert_with(|| Window::new(per_minute, Duration::from_secs(60)));
            window.call(now).map_err(Failure::limited)?;
        }
        let posts = matches!(method, "chat.postMessage" | "chat.startStream");
        if let Some(channel) = channel.filter(|_| posts) {
            let window = self
                .channels
                .entry(channel.to_owned())
                .or_insert_with(|| Window::new(BURST, Duration::from_secs(BURST as u64)));
            window.call(now).map_err(Failure::limited)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_refuses_posts_beyond_the_burst() {
        let mut limits = Limits::default();
        let start = Instant::now();
        let post = |limits: &mut Limits, channel: &str, at| {
            limits.call("chat.postMessage", Some(channel), at)
        };
        for _ in 0..BURST {
            assert!(post(&mut limits, "C1", start).is_ok());
        }
        let refused = post(&mut limits, "C1", start + Duration::from_secs(1)).unwrap_err();
        assert_eq!(refused.retry_after, Some(Duration::from_secs(2)));
        assert!(post(&mut limits, "C2", start).is_ok());
        assert!(post(&mut limits, "C1", start + Duration::from_secs(3)).is_ok());
    }

    #[test]
    fn method_refuses_calls_beyond_its_tier() {
        let mut limits = Limits::default();
        let start = Instant::now();
        for channel in 0..20 {
            let channel = format!("C{channel}");
            assert!(
                limits
                    .call("chat.startStream", Some(&channel), start)
                    .is_ok()
            );
        }
        assert!(limits.call("chat.startStream", Some("C99"), start).is_err());
    }
}
