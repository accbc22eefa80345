//! Items of long-term memory as clients see them.

use deerflow_domain::items::{Hit, Item};
use harness::clock::iso;
use serde_json::{Value, json};

/// The item.
pub fn item_json(item: &Item) -> Value {
    json!({
        "namespace": item.namespace.labels(),
        "key": item.key,
        "value": item.value,
        "created_at": iso(item.created_at),
        "updated_at": iso(item.updated_at),
    })
}

/// The item with how near it is, null where nothing was asked for.
pub fn hit_json(hit: &Hit) -> Value {
    let mut item = item_json(&hit.item);
    item["score"] = json!(hit.score);
    item
}
