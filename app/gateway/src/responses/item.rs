//! JSON of items of the item store.

use deerflow_domain::items::{Hit, Item};
use harness::clock::iso;
use serde_json::{Value, json};

/// Returns an item.
pub fn item_json(item: &Item) -> Value {
    json!({
        "namespace": item.namespace.labels(),
        "key": item.key,
        "value": item.value,
        "created_at": iso(item.created_at),
        "updated_at": iso(item.updated_at),
    })
}

/// Returns an item with its similarity score, null if the search had no query.
pub fn hit_json(hit: &Hit) -> Value {
    let mut item = item_json(&hit.item);
    item["score"] = json!(hit.score);
    item
}
