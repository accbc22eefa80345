//! Contract of the limit of an assistant's metadata.

use deerflow_runtime::runs::store::StoreError;
use deerflow_runtime::testkit::{at, object};
use serde_json::json;

use super::{AssistantStores, ann, content, get, id, make};
use crate::assistants::AssistantPatch;

/// The merged metadata is limited; a refused change adds no version.
pub async fn change_beyond_metadata_limit_adds_no_version(open: impl AsyncFn() -> AssistantStores) {
    let stores = open().await;
    let first = make(&stores, 1, content("g", "one", json!({"a": "0123456789"}))).await;
    let patch = |limit| AssistantPatch {
        name: Some("two".to_owned()),
        metadata: object(json!({"b": "0123456789"})),
        max_metadata_bytes: Some(limit),
        ..AssistantPatch::default()
    };
    let refused = stores
        .assistants
        .patch(id(1), patch(34), &ann(), at(5))
        .await;
    assert!(
        matches!(&refused, Err(StoreError::TooLarge(refused)) if (refused.limit, refused.size) == (34, 35)),
        "{refused:?}"
    );
    assert_eq!(get(&stores, 1).await, first);
    let second = stores
        .assistants
        .patch(id(1), patch(35), &ann(), at(5))
        .await;
    let second = second.expect("written").expect("there");
    assert_eq!((second.version, second.content.metadata.len()), (2, 2));
}
