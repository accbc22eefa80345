//! Events of a thread's runs, without the items about the runs themselves.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt};

use super::thread_cursor::ThreadCursor;
use super::thread_items::{ThreadItem, ThreadRunItem};
use super::thread_service::follow_runs;
use crate::definition::StoreError;
use crate::kernel::Runtime;
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::ThreadId;

/// Subscribes to the events of a thread. The stream ends only at shutdown.
pub(crate) async fn follow(
    thread: ThreadId,
    owner: Owner,
    cursor: ThreadCursor,
    heartbeat: Duration,
    runtime: &Arc<Runtime>,
) -> Result<BoxStream<'static, ThreadItem>, StoreError> {
    let items = follow_runs(thread, owner, cursor, heartbeat, runtime).await?;
    let mut current = None;
    let events = items.filter_map(move |item| {
        std::future::ready(match item {
            ThreadRunItem::Opened(run) => {
                current = Some(run.run_id);
                None
            }
            ThreadRunItem::Event(id, event) => Some(ThreadItem::Event(id, event)),
            ThreadRunItem::Ended(id, _) => current.take().map(|run| ThreadItem::RunDone(id, run)),
            ThreadRunItem::Heartbeat => Some(ThreadItem::Heartbeat),
            ThreadRunItem::Gap | ThreadRunItem::Skipped(..) | ThreadRunItem::Idle => None,
        })
    });
    Ok(events.boxed())
}
