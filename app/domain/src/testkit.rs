//! Contract suites of application stores, run by every implementation.
//!
//! Expand [`thread_store_suite`](crate::thread_store_suite) with a function that opens fresh
//! [`ThreadStores`], as with the suites of `deerflow_runtime::testkit`.

pub mod accounts;
pub mod api_keys;
pub mod assistants;
pub mod branches;
pub mod channels;
pub mod crons;
pub mod feedback;
pub mod flows;
pub mod items;
pub mod maintenance;
mod maintenance_history;
pub mod scheduled_tasks;
mod thread_listing;
pub mod thread_log;
mod thread_records;
mod thread_runs;
pub mod thread_search;
mod thread_storage;
pub mod usage;

use std::sync::Arc;

use deerflow_core::actor_context::Owner;
use deerflow_runtime::testkit::{RunStores, USER, at, object, thread};
use serde_json::Value;

use crate::assistants::AssistantStore;
use crate::branches::BranchStore;
use crate::feedback::FeedbackStore;
use crate::threads::{Created, NewThread, ThreadRecord, ThreadSearch, ThreadSort, ThreadStore};

pub use thread_listing::{
    metadata_match_respects_types, pinned_threads_precede_requested_order,
    thread_search_combines_filters_and_count_agrees,
};
pub use thread_records::{
    concurrent_patches_of_different_keys_both_apply, created_thread_is_returned_unchanged,
    patch_beyond_metadata_limit_changes_nothing, patch_merges_one_level_deep,
    repeated_create_returns_existing_thread_to_owner_only,
    repeated_thread_request_returns_its_thread, thread_of_other_user_is_hidden,
};
pub use thread_runs::{
    busy_thread_is_not_deleted, deleted_thread_leaves_no_rows_and_reserves_its_id,
    rollback_sets_thread_status_from_newest_checkpoint,
    run_updates_status_title_and_time_of_thread,
};
pub use thread_storage::storage_counts_checkpoints_values_and_tasks;

/// Generates one test per requirement of thread stores.
#[macro_export]
macro_rules! thread_store_suite {
    ($attrs:tt $open:expr) => {
        deerflow_runtime::promises! { $attrs $open, [$crate::testkit]
            created_thread_is_returned_unchanged
            repeated_create_returns_existing_thread_to_owner_only
            repeated_thread_request_returns_its_thread
            thread_of_other_user_is_hidden
            metadata_match_respects_types
            thread_search_combines_filters_and_count_agrees
            pinned_threads_precede_requested_order
            patch_merges_one_level_deep
            patch_beyond_metadata_limit_changes_nothing
            concurrent_patches_of_different_keys_both_apply
            run_updates_status_title_and_time_of_thread
            rollback_sets_thread_status_from_newest_checkpoint
            busy_thread_is_not_deleted
            deleted_thread_leaves_no_rows_and_reserves_its_id
            storage_counts_checkpoints_values_and_tasks
        }
    };
}

/// Ports of a store, opened fresh for each test.
#[derive(Debug, Clone)]
pub struct ThreadStores {
    /// Thread store under test.
    pub threads: Arc<dyn ThreadStore>,
    /// Branch store over the same threads.
    pub branches: Arc<dyn BranchStore>,
    /// Feedback of users.
    pub feedback: Arc<dyn FeedbackStore>,
    /// Assistant store over the same database.
    pub assistants: Arc<dyn AssistantStore>,
    /// Runs in the threads.
    pub runs: RunStores,
}

fn ann() -> Owner {
    Owner::User(USER.to_owned())
}

fn bob() -> Owner {
    Owner::User("bob".to_owned())
}

fn new_thread(id: &str, metadata: Value) -> NewThread {
    let metadata = object(metadata);
    NewThread {
        thread_id: thread(id),
        user_id: Some(USER.to_owned()),
        assistant: None,
        assistant_id: None,
        metadata,
        ttl: None,
        request: None,
        at: at(0),
    }
}

async fn make(stores: &ThreadStores, new: NewThread) -> ThreadRecord {
    match stores.threads.create(new).await {
        Ok(Created::New(record)) => record,
        other => panic!("not made: {other:?}"),
    }
}

async fn get(stores: &ThreadStores, id: &str) -> ThreadRecord {
    stores
        .threads
        .get(&thread(id), &Owner::None)
        .await
        .expect("read")
        .expect("there")
}

async fn found(stores: &ThreadStores, search: ThreadSearch) -> Vec<String> {
    let threads = stores
        .threads
        .search(
            &ThreadSearch {
                limit: 100,
                ..search
            },
            &ann(),
        )
        .await
        .expect("read");
    threads
        .into_iter()
        .map(|record| record.thread_id.to_string())
        .collect()
}

fn by_metadata(metadata: Value) -> ThreadSearch {
    ThreadSearch {
        metadata: object(metadata),
        sort_by: ThreadSort::ThreadId,
        ascending: true,
        ..ThreadSearch::default()
    }
}
