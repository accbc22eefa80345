//! The in-memory stores satisfy the contracts of their ports.

use std::sync::Arc;

use super::InMemoryStores;
use crate::testkit::RunStores;

async fn memory() -> RunStores {
    ports(InMemoryStores::new())
}

async fn shared() -> RunStores {
    ports(InMemoryStores::shared())
}

fn ports(stores: InMemoryStores) -> RunStores {
    let stores = Arc::new(stores);
    RunStores {
        create: stores.clone(),
        commit: stores.clone(),
        query: stores.clone(),
        delete: stores.clone(),
        ledger: stores.clone(),
        nodes: stores.clone(),
        events: stores.clone(),
        webhooks: stores.clone(),
        requests: stores.clone(),
        streams: stores.clone(),
        checkpoints: stores,
        keep: Arc::new(()),
    }
}

crate::run_store_suite!([#[tokio::test(flavor = "multi_thread", worker_threads = 2)]] memory);
crate::node_store_suite!([#[tokio::test(flavor = "multi_thread", worker_threads = 2)]] memory);
crate::tool_ledger_suite!([#[tokio::test(flavor = "multi_thread", worker_threads = 2)]] memory);
crate::run_events_suite!([#[tokio::test(flavor = "multi_thread", worker_threads = 2)]] memory);
crate::checkpointer_suite!([#[tokio::test(flavor = "multi_thread", worker_threads = 2)]] memory);
crate::webhook_outbox_suite!([#[tokio::test(flavor = "multi_thread", worker_threads = 2)]] memory);
crate::stream_log_suite!([#[tokio::test(flavor = "multi_thread", worker_threads = 2)]] memory);
crate::request_store_suite!([#[tokio::test(flavor = "multi_thread", worker_threads = 2)]] memory);

mod shared_by_several {
    crate::node_store_suite!([#[tokio::test(flavor = "multi_thread", worker_threads = 2)]] super::shared);
}
