//! Messages that were missed while no session could be resumed.

use std::time::Duration;

use serde_json::Value;

use super::answers::ApiError;
use super::ids::{id, is_newer};
use super::rest::Rest;
use crate::platform::PlatformError;

/// Number of messages of a page.
pub(super) const PAGE: u8 = 100;
/// Maximum number of pages of one channel.
pub(super) const MAX_PAGES: u8 = 10;
/// Number of attempts to fetch a page.
const ATTEMPTS: u8 = 5;
/// Pause after a failure.
const PAUSE: Duration = Duration::from_secs(1);
/// Maximum delay that is waited for.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// Fetches the messages after an id, in order.
pub(super) async fn page(
    rest: &Rest,
    channel: &str,
    after: &str,
) -> Result<Vec<Value>, PlatformError> {
    let mut attempt = 1;
    loop {
        let error = match rest.messages(channel, Some(after), PAGE).await {
            Ok(messages) => return Ok(in_order(messages, after)),
            Err(error) => error,
        };
        match error {
            ApiError::Failed(PlatformError::RateLimited { retry_after, .. })
                if attempt < ATTEMPTS && retry_after <= MAX_DELAY =>
            {
                tokio::time::sleep(retry_after).await;
            }
            ApiError::Failed(PlatformError::Unavailable(_)) if attempt < ATTEMPTS => {
                tokio::time::sleep(PAUSE).await;
            }
            other => return Err(other.into()),
        }
        attempt += 1;
    }
}

/// Sorts messages by id and drops those that are not after the given one.
fn in_order(messages: Vec<Value>, after: &str) -> Vec<Value> {
    let mut messages: Vec<Value> = messages
        .into_iter()
        .filter(|message| id(&message["id"]).is_some_and(|id| is_newer(id, after)))
        .collect();
    messages.sort_by_key(|message| {
        id(&message["id"])
            .and_then(|id| id.parse::<u128>().ok())
            .unwrap_or_default()
    });
    messages
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pages_are_sorted_and_old_messages_dropped() {
        let page = ["1000", "999", "x", "20", "30"].map(|id| json!({"id": id}));
        let ids: Vec<Value> = in_order(page.into(), "20")
            .into_iter()
            .map(|message| message["id"].clone())
            .collect();
        assert_eq!(ids, ["30", "999", "1000"]);
    }
}
