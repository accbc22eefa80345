//! The in-memory stores satisfy the contracts of their ports.

use super::InMemoryStores;
use crate::testkit::RunStores;

async fn memory() -> RunStores {
    InMemoryStores::new().into()
}

async fn shared() -> RunStores {
    InMemoryStores::shared().into()
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
