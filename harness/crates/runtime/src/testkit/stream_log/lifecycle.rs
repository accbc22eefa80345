//! Contract of the end of a stream log and of its deletion.

use super::{admitted, append, batch, page};
use crate::runs::RunStatus;
use crate::runs::store::RunCommit;
use crate::stream_bridge::{LogBatch, LogOutline, LogPage, StreamLogError, TerminalKind};
use crate::testkit::{RunStores, commit_of, end_in, new_run, run, thread};

/// The end is stored even if the log has no events of the run; a second end has no effect.
pub async fn end_is_reported_once_after_last_event(open: impl AsyncFn() -> RunStores) {
    let stores = admitted(open).await;
    append(&stores, batch("r1", 1, 1..=3)).await;
    assert_eq!(page(&stores.streams, "r1", 1).await.end, None);
    append(
        &stores,
        LogBatch {
            end: Some(TerminalKind::Error),
            ..batch("r1", 1, 3..=4)
        },
    )
    .await;
    append(
        &stores,
        LogBatch {
            end: Some(TerminalKind::End),
            ..batch("r1", 1, 3..=4)
        },
    )
    .await;
    for next in [1, 4, 5] {
        assert_eq!(
            page(&stores.streams, "r1", next).await.end,
            Some(TerminalKind::Error),
            "from {next}"
        );
    }
    assert_eq!(page(&stores.streams, "r1", 6).await, LogPage::default());
    assert_eq!(
        stores.streams.outline(&run("r1")).await.expect("read").end,
        Some((4, TerminalKind::Error))
    );

    stores
        .create
        .admit(new_run("r2", "t2"))
        .await
        .expect("admitted");
    let only = LogBatch {
        run_id: run("r2"),
        attempt: 1,
        before: 7,
        events: vec![],
        end: Some(TerminalKind::Cancel),
    };
    assert_eq!(
        (
            stores.streams.append(only.clone()).await,
            stores.streams.append(only).await
        ),
        (Ok(()), Ok(()))
    );
    assert_eq!(
        page(&stores.streams, "r2", 8).await,
        LogPage {
            events: vec![],
            end: Some(TerminalKind::Cancel)
        }
    );
    assert_eq!(
        stores.streams.outline(&run("r2")).await,
        Ok(LogOutline {
            ranges: vec![],
            end: Some((7, TerminalKind::Cancel))
        })
    );
}

/// The end of a stream is appended after the run's end.
pub async fn finished_run_accepts_appends_and_deleted_run_does_not(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = open().await;
    let record = stores
        .create
        .admit(new_run("r1", "t1"))
        .await
        .expect("admitted")
        .run;
    let end = Some(end_in(RunStatus::Error));
    let commit = RunCommit {
        end,
        ..commit_of(&record)
    };
    stores.commit.commit(commit.into()).await.expect("ended");
    append(
        &stores,
        LogBatch {
            end: Some(TerminalKind::Error),
            ..batch("r1", 1, 1..=2)
        },
    )
    .await;
    assert_eq!(stores.delete.delete(&run("r1")).await, Ok(true));
    assert_eq!(
        stores.streams.append(batch("r1", 1, 3..=3)).await,
        Err(StreamLogError::Gone(run("r1")))
    );
    assert_eq!(
        stores.streams.append(batch("never", 1, 1..=1)).await,
        Err(StreamLogError::Gone(run("never")))
    );
}

/// The log can also be deleted earlier, on request.
pub async fn log_is_deleted_with_run_and_thread(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    for n in 1..=4 {
        let (id, on) = (format!("r{n}"), format!("t{n}"));
        let record = stores
            .create
            .admit(new_run(&id, &on))
            .await
            .expect("admitted")
            .run;
        append(&stores, batch(&id, 1, 1..=2)).await;
        let commit = RunCommit {
            end: Some(end_in(RunStatus::Error)),
            ..commit_of(&record)
        };
        stores.commit.commit(commit.into()).await.expect("ended");
    }
    stores.delete.delete(&run("r1")).await.expect("deleted");
    stores
        .delete
        .delete_thread(&thread("t2"))
        .await
        .expect("deleted");
    assert_eq!(
        (
            stores.streams.forget(&run("r3")).await,
            stores.streams.forget(&run("r3")).await
        ),
        (Ok(()), Ok(()))
    );
    for (of, left) in [("r1", 0), ("r2", 0), ("r3", 0), ("r4", 2)] {
        assert_eq!(
            page(&stores.streams, of, 1).await.events.len(),
            left,
            "{of}"
        );
    }
}
