//! Pages of conversations.

use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use super::api::{Api, Body};
use super::budget::Urgency;
use super::cursor::Place;
use super::failure::Failure;

/// Maximum number of pages of one place.
const MAX_PAGES: usize = 5;
/// Maximum number of attempts of one page.
const MAX_ATTEMPTS: usize = 4;
/// Delay after an answer that was lost.
const RETRY: Duration = Duration::from_secs(2);

/// Lists the messages of a place that are newer than `oldest`, oldest first.
pub(super) async fn list(api: &Api, place: &Place, oldest: &str) -> Result<Vec<Value>, Failure> {
    let mut messages = Vec::new();
    let mut cursor = String::new();
    for _ in 0..MAX_PAGES {
        let mut answer = page(api, place, oldest, &cursor).await?;
        if let Value::Array(found) = answer["messages"].take() {
            messages.extend(found);
        }
        let next = answer["response_metadata"]["next_cursor"]
            .as_str()
            .unwrap_or_default();
        if next.is_empty() {
            break;
        }
        next.clone_into(&mut cursor);
    }
    if place.thread.is_none() {
        messages.reverse();
    }
    Ok(messages)
}

async fn page(api: &Api, place: &Place, oldest: &str, cursor: &str) -> Result<Value, Failure> {
    let fields = || {
        let mut fields = vec![
            ("channel", place.channel.clone()),
            ("oldest", oldest.to_owned()),
            ("limit", "200".to_owned()),
        ];
        if let Some(thread) = &place.thread {
            fields.push(("ts", thread.clone()));
        }
        if !cursor.is_empty() {
            fields.push(("cursor", cursor.to_owned()));
        }
        fields
    };
    let method = match place.thread {
        Some(_) => "conversations.replies",
        None => "conversations.history",
    };
    let mut attempt = 1;
    loop {
        let result = api
            .budgeted(method, Urgency::Live, Body::Form(fields()))
            .await;
        let delay = match result {
            // The budget of this process refused the call; that is no attempt.
            Err(Failure::Held(delay)) => {
                sleep(delay).await;
                continue;
            }
            Err(Failure::Limited(delay)) if attempt < MAX_ATTEMPTS => delay,
            Err(Failure::Lost(_)) if attempt < MAX_ATTEMPTS => RETRY,
            result => return result,
        };
        attempt += 1;
        sleep(delay).await;
    }
}
