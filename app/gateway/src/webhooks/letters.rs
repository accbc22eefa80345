//! A call of a webhook as whoever manages the installation sees it.

use harness::clock::iso;
use harness::runtime::runs::store::WebhookLetter;
use serde_json::{Value, json};

/// A call that was not taken yet, or never will be. What it says is nobody's but its receiver's.
pub fn letter_json(letter: &WebhookLetter) -> Value {
    json!({
        "run_id": letter.run_id.as_str(),
        "url": address(&letter.url),
        "ended_at": iso(letter.ended_at),
        "tries": letter.tries,
        "due_at": letter.due_at.map(iso),
        "died_at": letter.died_at.map(iso),
        "last_error": letter.last_error,
    })
}

/// An address without its query, which may hold a secret.
pub fn address(url: &str) -> String {
    url.split(['?', '#']).next().unwrap_or_default().to_owned()
}
