//! Contract of the sizes of stored states.

use deerflow_core::ids::SeededIds;
use deerflow_core::state::{StateUpdate, ThreadState};
use deerflow_runtime::checkpoint::PendingTask;
use deerflow_runtime::testkit::{checkpoint_write, message, thread};
use serde_json::json;

use super::{ThreadStores, make, new_thread};
use crate::threads::{StoredSize, ThreadStorage};

/// Number of checkpoints; more than a store reads at once.
const CHECKPOINTS: u64 = 120;

/// Each message is counted once, the other values and the pending tasks with each checkpoint.
pub async fn storage_counts_checkpoints_values_and_tasks(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    make(&stores, new_thread("t1", json!({}))).await;
    let storage = async |id| stores.threads.storage(&thread(id)).await.expect("sizes");
    assert_eq!(storage("t1").await, ThreadStorage::default());
    let (mut state, mut tail, ids) = (ThreadState::default(), 0, SeededIds::new(1));
    for n in 0..CHECKPOINTS {
        let update = StateUpdate::messages([message(&format!("m{n}"), "é")]);
        let update = update.and("title", json!("four"));
        state.apply(update, &ids).expect("applied");
        let mut write = checkpoint_write("t1", None, n, &mut state, &mut tail);
        write.meta.next = vec![PendingTask::new("1", "a"), PendingTask::new("2", "b")];
        stores.runs.checkpoints.put(write).await.expect("stored");
    }
    let stored = storage("t1").await;
    assert_eq!(stored.checkpoints.count, CHECKPOINTS);
    assert!(stored.checkpoints.bytes > CHECKPOINTS);
    let title = StoredSize {
        count: CHECKPOINTS,
        bytes: CHECKPOINTS * r#""four""#.len() as u64,
    };
    assert_eq!(stored.channels["title"], title);
    let bytes = state
        .messages()
        .iter()
        .map(|message| message.json().get().len() as u64);
    let messages = StoredSize {
        count: CHECKPOINTS,
        bytes: bytes.sum(),
    };
    assert_eq!(stored.channels["messages"], messages);
    assert_eq!(stored.channels.len(), 2, "{:?}", stored.channels);
    assert_eq!(stored.pending_tasks.count, 2 * CHECKPOINTS);
    assert!(stored.pending_tasks.bytes > 2 * CHECKPOINTS);
    assert_eq!(storage("t2").await, ThreadStorage::default());
}
