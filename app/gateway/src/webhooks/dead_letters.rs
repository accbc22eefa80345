//! JSON of undelivered webhook calls for administrators.

use harness::clock::iso;
use harness::runtime::runs::store::WebhookOutboxEntry;
use serde_json::{Value, json};

/// Returns an undelivered call. Its body is omitted: only the receiver may read it.
pub fn dead_letter_json(entry: &WebhookOutboxEntry) -> Value {
    json!({
        "run_id": entry.run_id.as_str(),
        "url": address(&entry.url),
        "ended_at": iso(entry.ended_at),
        "tries": entry.tries,
        "due_at": entry.due_at.map(iso),
        "died_at": entry.died_at.map(iso),
        "last_error": entry.last_error,
    })
}

/// Returns an address without its query, which may hold a secret.
pub fn address(url: &str) -> String {
    url.split(['?', '#']).next().unwrap_or_default().to_owned()
}
